"""The limits for records that do not decode hold for a whole run."""

import pytest

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.bad_records import check_bad_records, check_records
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import NOTHING_DECODED, BadRecord, DecodedCounts, Observations, SliceFacts
from resources.errors import BadRecords, TooManySkipped
from resources.settings.rules.load_rules import LoadRules
from resources.settings.topic_formats import RAW_FORMAT, TopicFormat

_LIMITED = TopicFormat(format="text", bad_records="keep", max_bad_records=3, max_bad_share=1.0)
_SHARE = TopicFormat(format="text", bad_records="keep", max_bad_share=0.1)


def step(rows: int, bad: int, *, partition: int = 0) -> SliceFacts:
    examples = (BadRecord(offset=7, reason="no UTF-8"),) if bad else ()
    offsets = OffsetRange(BrokerPartition(None, partition), 0, rows)
    return SliceFacts(
        range=CommittedRange(offsets=offsets, rows=rows), observed=Observations(bad=bad, bad_examples=examples)
    )


@pytest.mark.parametrize("format_", [RAW_FORMAT, _LIMITED, _SHARE])
def test_a_step_without_bad_records_exceeds_no_limit(format_: TopicFormat) -> None:
    earlier = DecodedCounts(rows=10, bad=10, first=(BrokerPartition(None, 0), BadRecord(offset=7, reason="no UTF-8")))
    check_bad_records(format_, [step(10, 0), step(0, 0)], Where(topic="clicks"), earlier=earlier)


@pytest.mark.parametrize("format_", [_LIMITED, _SHARE])
def test_a_limit_holds_for_all_steps_together(format_: TopicFormat) -> None:
    check_bad_records(format_, [step(20, 2)], Where(topic="clicks"), earlier=NOTHING_DECODED.plus([step(10, 1)]))
    with pytest.raises(BadRecords, match=r"^4 of 30 records do not decode as text") as caught:
        check_bad_records(
            format_, [step(20, 2)], Where(topic="clicks"), earlier=NOTHING_DECODED.plus([step(10, 2, partition=1)])
        )
    assert (caught.value.where.partition, caught.value.where.offset) == ("1", 7)


@pytest.mark.parametrize(
    ("rows", "skipped", "too_many"), [(900, 100, False), (899, 101, True), (898, 101, False), (0, 999, False)]
)
def test_a_share_of_skipped_records_is_too_large_above_the_limit_and_among_many_records(
    rows: int, skipped: int, too_many: bool
) -> None:
    format_ = TopicFormat(format="text", load=LoadRules(skip="value = 'x'", max_skipped_share=0.1))
    counts = DecodedCounts(rows=rows, skipped=skipped)
    if not too_many:
        check_records(format_, (), Where(topic="clicks"), earlier=counts)
        return
    with pytest.raises(TooManySkipped, match="leaves out 101 of 1,000 records"):
        check_records(format_, (), Where(topic="clicks"), earlier=counts)


def test_one_bad_record_among_slices_without_any_is_checked() -> None:
    with pytest.raises(BadRecords):
        check_records(_SHARE, [step(10, 0), step(4, 2, partition=1)], Where(topic="clicks"))
