"""The limits for records that do not decode, or that `skip` leaves out, over all steps of a run before each commit."""

from collections.abc import Sequence

from kafka_io.errors import Where
from pipelines.ledger.slice_facts import NOTHING_DECODED, DecodedCounts, SliceFacts
from resources.errors import BadRecords, TooManySkipped
from resources.settings.topic_formats import TopicFormat

_MIN_RECORDS_FOR_SHARE = 1000
"""A share of fewer records says little: they can all be heartbeats."""


def check_records(
    format_: TopicFormat, facts: Sequence[SliceFacts], where: Where, *, earlier: DecodedCounts = NOTHING_DECODED
) -> None:
    """Check both limits; see the functions that this one calls.

    Raises:
        BadRecords, TooManySkipped: a limit of the settings is exceeded.
    """
    check_bad_records(format_, facts, where, earlier=earlier)
    check_skipped_records(format_, facts, where, earlier=earlier)


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
    if not any(slice_facts.observed.bad for slice_facts in facts):
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


def check_skipped_records(
    format_: TopicFormat, facts: Sequence[SliceFacts], where: Where, *, earlier: DecodedCounts = NOTHING_DECODED
) -> None:
    """Check the share of the records of a run that the condition `skip` leaves out; see `check_bad_records`.

    Raises:
        TooManySkipped: it is larger than the settings of the topic allow.
    """
    counts, limit = earlier.plus(facts), format_.load.max_skipped_share
    records = counts.rows + counts.skipped
    if records < _MIN_RECORDS_FOR_SHARE or counts.skipped <= records * limit:
        return
    raise TooManySkipped(
        f"`skip` in [topics.NAME.load] leaves out {counts.skipped:,} of {records:,} records "
        f"({counts.skipped / records:.1%}), and max_skipped_share = {limit:g} allows fewer; nothing of this step was "
        "loaded: correct the condition, or allow a larger share if it is right",
        where,
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
