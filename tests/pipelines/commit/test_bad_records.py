"""The limits for records that do not decode hold for a whole run."""

import pytest

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.bad_records import check_bad_records
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import NOTHING_DECODED, BadRecord, DecodedCounts, Observations, SliceFacts
from resources.errors import BadRecords
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
