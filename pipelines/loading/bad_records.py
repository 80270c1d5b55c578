"""The limits for records that do not decode: they are checked before a commit, over all steps of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition
from pipelines.loading.work import BadRecord, SliceFacts
from resources.errors import BadRecords
from resources.topic_formats import TopicFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedCounts:
    """How many rows a run has, how many of their records do not decode, and the first of these."""

    rows: int = 0
    bad: int = 0
    first: tuple[BrokerPartition, BadRecord] | None = None

    def plus(self, facts: Sequence[SliceFacts]) -> Self:
        """The counts with those of more slices."""
        examples = ((part.partition, part.bad_examples[0]) for part in facts if part.bad)
        return replace(
            self,
            rows=self.rows + sum(part.rows for part in facts),
            bad=self.bad + sum(part.bad for part in facts),
            first=self.first or next(examples, None),
        )


NOTHING_DECODED = DecodedCounts()


def check_bad_records(
    format_: TopicFormat, facts: Sequence[SliceFacts], where: Where, *, earlier: DecodedCounts = NOTHING_DECODED
) -> None:
    """Check the records of a run that do not decode.

    Args:
        format_: the format of the topic, with the limits.
        facts: the slices of a step of the run.
        where: the topic.
        earlier: the counts of the steps before it, which were checked. A step without bad records exceeds no limit.

    Raises:
        BadRecords: there are more of them than the settings of the topic allow.
    """
    if not any(slice_facts.bad for slice_facts in facts):
        return
    counts = earlier.plus(facts)
    limit = _exceeded(format_, counts.bad, counts.rows)
    if not limit or counts.first is None:
        return
    partition, first = counts.first
    place = where.within(Where(topic=where.topic, partition=str(partition), offset=first.offset))
    raise BadRecords(
        f"{counts.bad:,} of {counts.rows:,} records do not decode as {format_.format}, and {limit}; the first one: "
        f"{first.reason}; nothing of this step was loaded: correct the format of the topic, or allow more such records "
        "in [topics.NAME]",
        place,
    )


def _exceeded(format_: TopicFormat, bad: int, rows: int) -> str:
    """The limit that is exceeded by some bad records, as the end of a sentence. It is empty if no limit is exceeded."""
    if format_.bad_records == "fail":
        return 'bad_records = "fail" allows none'
    if format_.max_bad_records is not None and bad > format_.max_bad_records:
        return f"max_bad_records = {format_.max_bad_records} allows fewer"
    if bad > rows * format_.max_bad_share:
        return f"max_bad_share = {format_.max_bad_share:g} allows fewer"
    return ""
