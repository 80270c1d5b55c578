"""Finds the first offset at which a log and its table differ, where leader epochs do not show it.

A log that was truncated has the same messages as the table up to some offset, and others from there on. So a binary
search needs only a few messages of both. A log that was created again has no message in common with the table. It may
also begin before offsets that expired in the table.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, Self, TypeGuard

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, OffsetOutOfRange
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from kafka_io.reader.unreadable import is_unreadable
from kafka_io.records.last_message import LastMessage
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState
from pipelines.ledger.table_rules import KEEP, KEY_COLUMN
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CursorAheadOfLog, TopicRecreated


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first message of the table that the log does not have.

    `common` is false if the log has other messages than the table, and none of the table's: it is another log.
    """

    offset: int
    common: bool

    def at_most(self, end: int) -> Self:
        """The same, if the log has other records from `end` on."""
        return replace(self, offset=min(self.offset, end))


def has_news(state: TableState, bounds: Mapping[BrokerPartition, Bounds]) -> bool:
    """Whether a log has offsets after the table's cursor."""
    return any(state.covered.get(partition, (0, 0))[1] < bound.latest for partition, bound in bounds.items())


class ComparedMessages(NamedTuple):
    """The answers of logs that were asked for the last message of the table.

    Args:
        same: partitions whose log has this message.
        differing: the offsets at which logs have another message.
        out_of_range: partitions whose log has lost the offset since its bounds were read.
        errors: the errors of brokers that did not answer.
    """

    same: set[BrokerPartition]
    differing: dict[BrokerPartition, int]
    out_of_range: set[BrokerPartition]
    errors: dict[BrokerPartition, KafkaIOError]


def compare_last_messages(
    cluster: Cluster,
    state: TableState,
    bounds: Mapping[BrokerPartition, Bounds],
    *,
    with_idle: bool,
    doubtful: Collection[BrokerPartition] = (),
) -> ComparedMessages:
    """Compare the last message before each cursor with the one that the log has at its offset.

    Only partitions with something to load are asked, and those that are `doubtful`; with idle ones all are asked. A
    message that expired, was compacted or cannot be read contradicts nothing.
    """
    # A message before the earliest offset has expired and cannot contradict anything. A log that ends at the cursor is
    # idle, and one that ends before the cursor has no message to ask for: it has become shorter.
    ranges = {
        partition: OffsetRange(partition, message.offset, state.covered[partition][1])
        for partition, message in state.last_messages.items()
        if partition in bounds
        and bounds[partition].earliest <= message.offset
        and state.covered[partition][1] < bounds[partition].latest + (with_idle or partition in doubtful)
    }
    answers = cluster.last_messages(state.topic.kafka_topic, ranges) if ranges else {}
    # From 0.8 on, a log that lost the message to compaction answers with the next one. That is no other message.
    differing = {
        partition: answer.offset
        for partition, answer in answers.items()
        if isinstance(answer, LastMessage)
        and answer != state.last_messages[partition]
        and not _is_later(answer, ranges[partition])
    }
    return ComparedMessages(
        same={partition for partition, answer in answers.items() if answer == state.last_messages[partition]},
        differing=differing,
        out_of_range={partition for partition, answer in answers.items() if isinstance(answer, OffsetOutOfRange)},
        errors={partition: answer for partition, answer in answers.items() if _is_failure(answer)},
    )


def _is_failure(answer: LastMessage | KafkaIOError | None) -> TypeGuard[KafkaIOError]:
    """Whether an answer says nothing about the log, which has to be asked again."""
    return isinstance(answer, KafkaIOError) and not isinstance(answer, OffsetOutOfRange) and not is_unreadable(answer)


def check_same_logs(cluster: Cluster, state: TableState, bounds: Mapping[BrokerPartition, Bounds]) -> None:
    """Check that the logs, from which rows were just read, still have the last messages of the table.

    Raises:
        TopicRecreated: a log has another message.
        KafkaIOError: a log cannot be read.
    """
    _, differing, _, errors = compare_last_messages(cluster, state, bounds, with_idle=True)
    # Logs that end before the cursor were not asked above. They have lost the last message of the table in any case.
    for partition in sorted(state.last_messages.keys() & bounds.keys()):
        if bounds[partition].latest < state.covered[partition][1]:
            differing.setdefault(partition, bounds[partition].latest)
    for error in errors.values():
        raise error
    for partition, offset in sorted(differing.items()):
        raise TopicRecreated(
            f"the log of partition {partition} has another message at offset {offset} than the table: it was truncated "
            "or created again; the next load says what to do",
            state.topic.where,
        )


def check_expired(cluster: Cluster, state: TableState, skipped: Iterable[OffsetRange]) -> None:
    """Check that the logs still do not have the offsets that a load skips as expired.

    The log may have been created again between the answer that they expired and the fetch of its messages.

    Raises:
        TopicRecreated: a log has some of them.
        CursorAheadOfLog: a log ends before them.
        KafkaIOError: a log cannot be read.
    """
    # With the same topic id the log is the same, and the first offset of a log never decreases: nothing can come back.
    ends = {offsets.partition: offsets.stop for offsets in skipped} if not state.findings.same_topic_id else {}
    bounds: dict[BrokerPartition, Bounds] = {}
    for partition, answer in cluster.bounds(state.topic.kafka_topic, ends).items() if ends else ():
        if not isinstance(answer, Bounds):
            raise answer
        if answer.latest < ends[partition]:
            raise CursorAheadOfLog(
                f"the log of partition {partition} ends at {answer.latest}, but records up to {ends[partition]} had "
                "expired: it was truncated or created again; load again",
                state.topic.where,
            )
        bounds[partition] = answer
    for partition in sorted(_with_messages_before(cluster, state, bounds, ends)):
        raise TopicRecreated(
            f"the log of partition {partition} has messages before offset {ends[partition]}, which had expired: it was "
            "created again; load again",
            state.topic.where,
        )


def _with_messages_before(
    cluster: Cluster,
    state: TableState,
    bounds: Mapping[BrokerPartition, Bounds],
    ends: Mapping[BrokerPartition, int],
) -> set[BrokerPartition]:
    """The partitions whose log has a message before the end. The message is read, as bounds may be wrong (fault B14).

    Raises:
        KafkaIOError: a log cannot be read.
    """
    first = {
        partition: OffsetRange(partition, bound.earliest, bound.earliest + 1)
        for partition, bound in bounds.items()
        if bound.earliest < min(bound.latest, ends.get(partition, 0))
    }
    answers = cluster.last_messages(state.topic.kafka_topic, first) if first else {}
    partitions = set()
    for partition, answer in answers.items():
        if isinstance(answer, LastMessage):
            partitions |= {partition} if answer.offset < ends[partition] else set()
        elif _is_failure(answer):
            raise answer
        # Bytes that nobody can decode are a message of the log, too: the log has begun before the end.
        elif answer is not None and is_unreadable(answer):
            partitions.add(partition)
    return partitions


def unexplained_beginnings(
    state: TableState, bounds: Mapping[BrokerPartition, Bounds]
) -> dict[BrokerPartition, Bounds]:
    """The bounds of logs that begin between the last message of the table and its cursor.

    Such a log has offsets that are in the table without a message; see `DivergenceSearch.with_expired`.
    """
    if state.findings.same_topic_id:
        return {}
    messages = {partition: message.offset for partition, message in state.last_messages.items()}
    return {
        partition: bound
        for partition, bound in bounds.items()
        if partition in state.covered
        and state.covered[partition][0] < state.covered[partition][1]
        and messages.get(partition, -1) < bound.earliest < state.covered[partition][1]
    }


class _Shown(Enum):
    """What the log shows at the offset of a message of the table."""

    SAME = "the same message"
    OTHER = "another message"
    NOTHING = "nothing: the message was compacted or cannot be read"


class _Row(NamedTuple):
    """A message of the table: the range that contains it, and its offsets up to the next message."""

    committed: CommittedRange
    offsets: OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceSearch:
    """Searches in one partition; see `run`."""

    cluster: Cluster
    table: TableStore
    snapshot: TableSnapshot
    state: TableState

    def run(self, partition: BrokerPartition, bound: Bounds, *, other_at: int | None = None) -> Divergence:
        """Find the offset at which the log diverged from the table.

        Offsets before the log's earliest one cannot be compared. `other_at` is the offset of the message that the log
        has in place of the last one of the table; None if it has the same, or nobody knows.

        Raises:
            KafkaIOError: a broker does not answer, or the log has changed since its bounds were read.
            LakeUnavailable: the table cannot be read.
        """
        # A log that shows no other message and is not shorter is searched because its leader does not know the epoch
        # of the table.
        has_unknown_epoch = other_at is None and bound.latest >= self.state.covered[partition][1]
        # A search compares messages byte by byte.
        if not self.has_bytes:
            return self._after_last_common_commit(partition, bound, may_be_same=has_unknown_epoch)
        comparison = _Comparison.of(self, partition, bound.earliest)
        # The log has messages of the table before `low`, and none of its messages from `high` on. Where it shows
        # nothing, a message may have been compacted, and nothing would load it again. So it is not taken back.
        end = min(bound.latest, self.state.covered[partition][1])
        low, high = bound.earliest, end
        diverged, shown_kinds = end, set[_Shown]() if other_at is None else {_Shown.OTHER}
        while low < high:
            middle = (low + high) // 2
            offset, answer = comparison.first_shown(middle, high)
            shown_kinds.add(answer)
            if answer is _Shown.SAME:
                low = offset + 1
            else:
                high = middle if answer is _Shown.NOTHING else offset
                diverged = diverged if answer is _Shown.NOTHING else offset
        # The row of the last message may have been erased or retired, so that no row shows another one (fault P26).
        diverged = diverged if other_at is None else min(diverged, other_at)
        if diverged < end or has_unknown_epoch:
            # The log may have other records from there on, at offsets for which the table has no row (fault P28).
            diverged = comparison.end_of_rows_before(diverged)
        # A topic with the same id was not created again, whatever its log has lost. A log that has only become shorter
        # shows no other message: it was truncated, and not created again.
        common = (
            self.state.findings.same_topic_id
            or _Shown.SAME in shown_kinds
            or (_Shown.OTHER not in shown_kinds and not self.with_expired({partition: bound}))
        )
        return Divergence(offset=diverged, common=common)

    @property
    def has_bytes(self) -> bool:
        """Whether the table has keys and values as the records have them. A typed table has not."""
        rules = self.state.rules
        return not (self.snapshot.layout.is_typed or rules.key != KEEP or KEY_COLUMN in rules.varying)

    def has_message_at(self, partition: BrokerPartition, bound: Bounds, offset: int) -> bool:
        """Whether the log has the table's first message at this offset or after it. Only bytes can show it."""
        if not self.has_bytes:
            return True
        end = min(bound.latest, self.state.covered[partition][1])
        shown = _Comparison.of(self, partition, offset).first_shown(max(offset, bound.earliest), end)[1]
        return shown is not _Shown.OTHER

    def ranges_from(self, partition: BrokerPartition, start: int) -> Sequence[CommittedRange]:
        """The ranges of the partition that have offsets from `start` on."""
        return [
            committed
            for committed in self._ranges(self.table.entries(self.snapshot))
            if committed.partition == partition and committed.offsets.stop > start
        ]

    def with_expired(self, bounds: Mapping[BrokerPartition, Bounds]) -> set[BrokerPartition]:
        """The partitions whose log has a message at an offset that the table records as expired.

        The first offset of a log never decreases, so such a log was created again. In 0.8 to 0.10 it may also belong to
        a new leader that expires later than the former one did. Then, too, the log has records that the table skipped,
        and the user decides about them. What expired before the user adopted another log says nothing about this one.

        Raises:
            KafkaIOError: a log cannot be read.
        """
        expired = {
            committed.partition: committed.offsets.stop
            for committed in self._ranges(_since_adoption(self.table.entries(self.snapshot)))
            if EXPIRED in committed.gaps
        }
        return _with_messages_before(self.cluster, self.state, bounds, expired)

    def _ranges(self, entries: Iterable[tuple[int, LedgerEntry]]) -> Sequence[CommittedRange]:
        return ranges_of(entries, self.state.topic)

    def _after_last_common_commit(self, partition: BrokerPartition, bound: Bounds, *, may_be_same: bool) -> Divergence:
        """Where the log may have diverged from a typed table, which lacks the bytes of its messages.

        The ledger has the digest of the last message of each commit. The log has some of them up to one commit, and
        none of the later ones. What is in the table after this commit is loaded again. Compaction may have removed
        some of it from the log, so nothing of a compacted topic is found: the user decides as about another log.

        `may_be_same` says that nothing but an unknown epoch raises a doubt. Then rows stay if no message contradicts
        them; the offsets after the last row are loaded again.
        """
        if self._may_be_compacted():
            if may_be_same:
                return self._after_last_row(partition, bound)
            return Divergence(offset=bound.earliest, common=False)
        comparable = [
            (message, cursor)
            for message, cursor in self._committed_messages(partition)
            if bound.earliest <= message.offset < bound.latest
        ]
        count = bisect_left(comparable, True, key=lambda committed: not self._is_in_log(partition, *committed))
        if not comparable and may_be_same:
            return self._after_last_row(partition, bound)
        if not count:
            return Divergence(offset=bound.earliest, common=self.state.findings.same_topic_id)
        message, after = comparable[count - 1]
        # From 0.8 on, the log can have records between the message and the cursor that have no row in the table.
        end = message.offset + 1 if partition.broker is None else after
        # The cursor after the last common message can lie behind the end of a log that became shorter.
        return Divergence(offset=min(end, bound.latest), common=True)

    def _after_last_row(self, partition: BrokerPartition, bound: Bounds) -> Divergence:
        """The end of the rows: the log may have other records at later offsets before the cursor (fault P28)."""
        comparison = _Comparison.of(self, partition, bound.earliest)
        return Divergence(offset=comparison.end_of_rows_before(self.state.covered[partition][1]), common=True)

    def _may_be_compacted(self) -> bool:
        try:
            policies = self.cluster.cleanup_policies(self.state.topic.kafka_topic)
        except KafkaIOError as error:
            if error.retriable:
                raise
            # A policy that nobody can read may be compact. Then messages can be missing without a truncation
            # (fault P12).
            policies = None
        return policies is None or "compact" in policies

    def _committed_messages(self, partition: BrokerPartition) -> Sequence[tuple[LastMessage, int]]:
        """The last message of each commit and the cursor after it, in order, as far as the table still has them."""
        messages: dict[int, tuple[LastMessage, int]] = {}
        end = self.state.covered[partition][1]
        for _, entry in self.table.entries(self.snapshot):
            # Older entries are about another log, or about a time before the first load of the partition.
            if entry.topic != self.state.topic or partition not in entry.covered:
                break
            end = min(end, entry.covered[partition][1])  # what is after it was taken back since
            message = entry.state.last_messages.get(partition)
            if message and message.offset < end:
                messages[message.offset] = (message, end)
            if entry.kind is CommitKind.REWIND:
                break  # the commits before it may have rows that the table does not have
        return [messages[offset] for offset in sorted(messages)]

    def _is_in_log(self, partition: BrokerPartition, message: LastMessage, cursor: int) -> bool:
        offsets = OffsetRange(partition, message.offset, cursor)
        answer = self.cluster.last_messages(self.state.topic.kafka_topic, {partition: offsets})[partition]
        if isinstance(answer, KafkaIOError) and not is_unreadable(answer):
            raise answer
        return answer == message


@dataclass(slots=True, kw_only=True)
class _Comparison:
    """Compares messages of the ranges of one partition, in order of offset, with its log.

    The offsets of all rows may not fit into memory, so it keeps only those of the range that was read last.

    Args:
        search: the search.
        ranges: the ranges that have rows.
        begin: the first offset that both the log and the table can have.
        in_bytes: whether offsets count bytes, as in 0.7.
        lacks_rows: whether rows were erased, filtered, retired or routed to another table.
    """

    search: DivergenceSearch
    ranges: Sequence[CommittedRange]
    begin: int
    in_bytes: bool
    lacks_rows: bool
    _read: CommittedRange | None = None
    _offsets: Sequence[int] = ()

    @classmethod
    def of(cls, search: DivergenceSearch, partition: BrokerPartition, start: int) -> Self:
        """A comparison of the messages from `start` on."""
        ranges = search.ranges_from(partition, start)
        return cls(
            search=search,
            ranges=[committed for committed in ranges if committed.rows],
            begin=max(start, search.state.covered[partition][0]),
            in_bytes=partition.broker is not None,
            lacks_rows=any(committed.exact for committed in ranges),
        )

    def first_shown(self, start: int, stop: int) -> tuple[int, _Shown]:
        """The first row of `[start, stop)` at whose offset the log shows a message, and which one it shows.

        If a message cannot be read, the search skips rows: one at first, then twice as many each time.
        """
        step = 1
        while (row := self._row(start)) and row.offsets.start < stop:
            answer = self._answer(row.offsets)
            if isinstance(answer, LastMessage) and not _is_later(answer, row.offsets):
                stored = self.search.table.message(self.search.snapshot, row.committed, row.offsets.start)
                return row.offsets.start, _Shown.SAME if answer == stored else _Shown.OTHER
            if answer is None:
                break  # the log has no message here or after it
            start, step = (
                (answer.offset, 1) if isinstance(answer, LastMessage) else (row.offsets.start + step, 2 * step)
            )
        return stop, _Shown.NOTHING

    def end_of_rows_before(self, offset: int) -> int:
        """The offset up to which the table has rows before `offset`; the beginning if it has none.

        In 0.7 a message ends where the next one begins, and each has a row. If rows are lacking, nothing shows where
        the last message before `offset` ends. Then this is the offset of its beginning.
        """
        if self.in_bytes and not self.lacks_rows:
            return max(self.begin, offset)
        for committed in reversed(self.ranges[: bisect_left(self.ranges, offset, key=lambda part: part.offsets.start)]):
            offsets = self.search.table.row_offsets(self.search.snapshot, committed)
            if number := bisect_left(offsets, offset):
                return max(self.begin, offsets[number - 1] + (0 if self.in_bytes else 1))
        return self.begin

    def _answer(self, offsets: OffsetRange) -> LastMessage | KafkaIOError | None:
        topic = self.search.state.topic.kafka_topic
        answer = self.search.cluster.last_messages(topic, {offsets.partition: offsets})[offsets.partition]
        # An offset out of range was in the log when its bounds were read, so it has expired or was truncated since.
        if isinstance(answer, KafkaIOError) and not is_unreadable(answer):
            raise answer
        return answer

    def _row(self, offset: int) -> _Row | None:
        """The first row at this offset or after it."""
        for committed in self.ranges[bisect_right(self.ranges, offset, key=lambda ranged: ranged.offsets.stop) :]:
            if self._read is not committed:
                self._read, self._offsets = committed, self.search.table.row_offsets(self.search.snapshot, committed)
            number = bisect_left(self._offsets, offset)
            if number < len(self._offsets):
                # A row reaches up to the next one, and the last row up to the end of the range. So one question also
                # covers the offsets in between, which compaction or an aborted transaction left without a row.
                start, stop = (*self._offsets[number : number + 2], committed.offsets.stop)[:2]
                return _Row(committed, OffsetRange(committed.partition, start, stop))
        return None


def _since_adoption(entries: Iterable[tuple[int, LedgerEntry]]) -> Iterator[tuple[int, LedgerEntry]]:
    """The newest entries, up to the one in which the user adopted another topic or cluster."""
    for version, entry in entries:
        yield version, entry
        if any(choice.value == "adopt" for choice in entry.choices):
            return


def _is_later(answer: LastMessage, offsets: OffsetRange) -> bool:
    """Whether the log has no message at the start of the offsets, and showed the next one; in 0.7 it never does."""
    return offsets.partition.broker is None and answer.offset > offsets.start
