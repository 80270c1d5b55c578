"""Finds where a log without epochs and ids diverged from the rows of its table.

A log that was truncated has the same messages as the table up to some offset, and others from there on. So a binary
search needs only a few messages of both. A log that was created again has no message in common with the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, OffsetOutOfRange
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from kafka_io.reader.unreadable import is_unreadable
from kafka_io.records.last_message import LastMessage
from pipelines.loading.incarnations import incarnations
from pipelines.loading.ledger import TableState
from pipelines.loading.table_log import TableLog, TableSnapshot
from pipelines.loading.work import CommittedRange
from resources.errors import TopicRecreated

_MOST_NEIGHBOURS = 16
"""The most messages that are compared one after the other, as long as the log shows nothing at their offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first message of the table that the log does not have.

    `common` is false if the log has other messages than the table, and none of the table's: it is another log.
    """

    offset: int
    common: bool


def differing_messages(
    cluster: Cluster, state: TableState, bounds: Mapping[BrokerPartition, Bounds], *, with_idle: bool
) -> tuple[dict[BrokerPartition, int], dict[BrokerPartition, KafkaIOError]]:
    """The offsets at which the logs have another message than the last one before the cursor, and errors.

    Only partitions with something to load are asked, or also idle ones. A message that expired, was compacted or cannot
    be read contradicts nothing. If the table and the cluster know the same topic id, no log is asked.
    """
    ranges = {
        partition: OffsetRange(partition, message.offset, state.covered[partition][1])
        for partition, message in state.last_messages.items()
        if partition in bounds
        and not state.same_topic_id
        and bounds[partition].earliest <= message.offset
        and state.covered[partition][1] < bounds[partition].latest + with_idle
    }
    answers = cluster.last_messages(state.topic.name, ranges) if ranges else {}
    errors = {
        partition: answer
        for partition, answer in answers.items()
        if isinstance(answer, KafkaIOError) and not isinstance(answer, OffsetOutOfRange) and not is_unreadable(answer)
    }
    differing = {
        partition: answer.offset
        for partition, answer in answers.items()
        if isinstance(answer, LastMessage) and answer != state.last_messages[partition]
    }
    return differing, errors


def check_same_logs(cluster: Cluster, state: TableState, bounds: Mapping[BrokerPartition, Bounds]) -> None:
    """Check that the logs, from which rows were just read, still have the last messages of the table.

    Raises:
        TopicRecreated: a log has another message.
        KafkaIOError: a log cannot be read.
    """
    differing, errors = differing_messages(cluster, state, bounds, with_idle=True)
    for partition in sorted(state.last_messages.keys() & bounds.keys()) if not state.same_topic_id else ():
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


class _Shown(Enum):
    """The message of the log at the offset of a message of the table; None if it was compacted or cannot be read."""

    SAME = "the same message"
    OTHER = "another message"
    END = "its end"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceSearch:
    """Searches in one partition; see `run`."""

    cluster: Cluster
    log: TableLog
    snapshot: TableSnapshot
    state: TableState

    def run(self, partition: BrokerPartition, bound: Bounds, *, differs: bool = False) -> Divergence:
        """Find the offset at which the log diverged from the table.

        Offsets before the log's earliest one cannot be compared. A typed table lacks the bytes of its messages, so
        nothing of it is found in the log: the user decides as about a log that was created again. If `differs`, the log
        has another message than the last one of the table.

        Raises:
            KafkaIOError: a broker does not answer.
            LakeUnavailable: the table cannot be read.
        """
        if self.snapshot.layout.is_typed:
            return Divergence(offset=bound.earliest, common=False)
        by_topic = {
            incarnation.topic: incarnation.ranges for incarnation in incarnations(self.log.entries(self.snapshot))
        }
        ranges = [
            committed
            for committed in by_topic.get(self.state.topic, ())
            if committed.partition == partition and committed.rows and committed.offsets.stop > bound.earliest
        ]
        # The offsets of all rows may not fit into memory, so only the first ones of each range are kept.
        heads = [
            (committed, offsets[: _MOST_NEIGHBOURS + 1])
            for committed in ranges
            if (offsets := self._offsets(committed, bound))
        ]
        shown = {_Shown.OTHER} if differs else set[_Shown]()
        beyond = _first_beyond(len(heads), shown, lambda number: self._head(*heads[number]))
        if beyond == 0:
            # A log that has only become shorter shows no other message: it was truncated, and not created again.
            return Divergence(
                offset=min([bound.latest, *heads[0][1][:1]] if heads else [bound.latest]),
                common=_Shown.OTHER not in shown,
            )
        last, _ = heads[beyond - 1]
        offsets = self._offsets(last, bound)
        number = _first_beyond(len(offsets), shown, lambda place: self._compared(last, offsets[place : place + 2]))
        after = heads[beyond][1][0] if beyond < len(heads) else last.offsets.stop
        return Divergence(offset=offsets[number] if number < len(offsets) else after, common=True)

    def _offsets(self, committed: CommittedRange, bound: Bounds) -> list[int]:
        return [offset for offset in self.log.row_offsets(self.snapshot, committed) if offset >= bound.earliest]

    def _head(self, committed: CommittedRange, offsets: Sequence[int]) -> _Shown:
        """The log's message at the first of these row offsets that still has one."""
        places = range(min(len(offsets), _MOST_NEIGHBOURS))
        return _first_shown(places, lambda place: self._compared(committed, offsets[place : place + 2]))[1]

    def _compared(self, committed: CommittedRange, offsets: Sequence[int]) -> _Shown:
        """The log's message at the first of these row offsets; the search ends at the second one."""
        offset, stop = (*offsets, committed.offsets.stop)[:2]
        stored = self.log.message(self.snapshot, committed, offset)
        message = OffsetRange(committed.partition, offset, stop)
        answer = self.cluster.last_messages(self.state.topic.name, {committed.partition: message})[committed.partition]
        if isinstance(answer, OffsetOutOfRange):
            return _Shown.END  # the log ends before the message
        if isinstance(answer, KafkaIOError) and not is_unreadable(answer):
            raise answer
        if isinstance(answer, LastMessage):
            return _Shown.SAME if answer == stored else _Shown.OTHER
        return _Shown.NOTHING


def _first_shown(numbers: Sequence[int], compared: Callable[[int], _Shown]) -> tuple[int, _Shown]:
    """The first of the numbers of messages at which the log shows anything, and what it shows; else the last one."""
    for number in numbers:
        answer = compared(number)
        if answer is not _Shown.NOTHING:
            return number, answer
    return numbers[-1], _Shown.NOTHING


def _first_beyond(count: int, shown: set[_Shown], compared: Callable[[int], _Shown]) -> int:
    """The number of the first of so many messages that are not in the log any more, in a binary search.

    Where the log shows nothing, a few of the following messages are compared. `shown` gets what the log showed.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        number, answer = _first_shown(range(middle, min(high, middle + _MOST_NEIGHBOURS)), compared)
        shown.add(answer)
        if answer is _Shown.SAME:
            low = number + 1
        else:
            high = middle
    return low
