"""The shapes of `penstock status`, `penstock topics` and `penstock complete` with `--json`."""

from pipelines.cli.output.shape import PrintedError, Shape
from pipelines.status.status import RetentionSource, TopicState


class HangingTransaction(Shape):
    """The oldest open transaction of a partition."""

    first_offset: int
    began_ms: int | None
    producer_id: int | None


class PartitionState(Shape):
    """The log and the cursor of a partition. Times are ms since 1970."""

    broker: int | None
    partition: int
    earliest: int | None
    latest: int | None
    cursor: int | None
    oldest_ms: int | None
    expires_ms: int | None
    held_back: int
    """The number of offsets that an open transaction holds back."""
    transaction: HangingTransaction | None
    lag: int | None
    lost: int


class FailedLoad(Shape):
    """Why the last load of a topic failed."""

    run: str
    time_ms: int
    errors: list[PrintedError]
    """The first errors."""
    count: int
    """The number of all errors."""


class KeptFor(Shape):
    """The retention time that `left_s` is computed with."""

    ms: int | None
    by: RetentionSource


class RetentionSettings(Shape):
    """The retention settings that the brokers report; -1 for no limit."""

    ms: int | None
    bytes: int | None


class NewestLoad(Shape):
    """The newest commit of a load, as the table records it. Times are ms since 1970."""

    planned_ms: int
    committed_ms: int | None
    rows: int
    bytes: int
    files: int
    gaps: dict[str, int]
    """The number of offsets without a row, by cause."""
    seconds: float | None
    """The time from the plan of the load, or of the last of its steps, to the commit."""


class ShownTopic(Shape):
    """A result of `penstock status` and `penstock topics`."""

    cluster: str
    topic: str
    incarnation: str | None
    has_id: bool | None
    """Whether the cluster gives the topic an id; null if the cluster no longer has the topic."""
    table: str
    version: int | None
    loaded_at_ms: int | None
    last_load: NewestLoad | None
    """Null before the first load."""
    rows: int | None
    """The number of rows of the table; null if there is no table or it cannot be read. `bytes` and `files` too."""
    bytes: int | None
    files: int | None
    state: TopicState
    lag: int | None
    lost: int
    bad_records: int
    """The number of rows of the table whose value does not decode; 0 for a raw table."""
    valid_through_ms: int | None
    """The table is complete through this event time; null if nothing proves any time."""
    late_s: float | None
    left_s: float | None
    left_share: float | None
    kept: KeptFor
    retention: RetentionSettings
    last_error: FailedLoad | None
    warnings: list[str]
    errors: list[PrintedError]
    partitions: list[PartitionState]


class PartitionEventTime(Shape):
    """The event time of a partition, as the newest commit records it. Times are ms since 1970."""

    broker: int | None
    partition: int
    end: int | None
    """The end of the log when the broker was asked last; null before its first answer."""
    held_back: int
    """The number of offsets that an open transaction held back then."""
    asked_ms: int | None
    at_end: bool
    """Whether the cursor reached the end."""
    max_ms: int | None
    """The largest event time of the rows so far."""
    proven_ms: int | None
    """All records that were appended before this time are in the table; null without a proof."""


class PrintedHour(Shape):
    """An hour in which too many rows are missing."""

    start_ms: int
    expected: int
    """The number of records that producers counted."""
    rows: int
    """The number of rows in the table."""
    difference: int
    """The number of missing rows."""


class PrintedAudit(Shape):
    """The comparison of the last hours of a table with the counts of producers."""

    counts_topic: str
    counts_version: int
    counts_valid_through_ms: int | None
    """All counts that were sent before this time are known; null if nothing proves any time."""
    counts_needed_ms: int
    """The end of the compared hours, and the allowed lateness of the topic: until then records may be counted."""
    has_all_counts: bool
    """Whether `counts_valid_through_ms` has reached `counts_needed_ms`."""
    share: float
    """The share of the counted records that an hour needs."""
    compared_hours: int
    expected: int
    """The number of counted records of all compared hours."""
    rows: int
    """The number of rows of all compared hours."""
    hours_without_counts: int
    """The number of hours that have rows, but no counted records."""
    malformed_counts: int
    """The number of count messages that cannot be used."""
    incomplete_hours: list[PrintedHour]


class CompletedTable(Shape):
    """The result of `penstock complete`."""

    cluster: str
    topic: str
    table: str
    version: int
    complete: bool
    through_ms: int
    valid_through_ms: int | None
    """The table is complete through this time; null if nothing proves any time."""
    event_time: str
    """The setting `event_time` of the topic."""
    allowed_lateness_ms: int
    moved_back_by: str
    """The reason why the newest commit moved the valid-through back, such as "rewind"; empty if it did not."""
    partitions: list[PartitionEventTime]
    audit: PrintedAudit | None
    """Null if the topic has no setting `audit`."""
