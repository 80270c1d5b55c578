"""Finds where a log without epochs and ids diverged from the rows of its table.

A log that was truncated has the same messages as the table up to some offset, and others from there on. So a binary
search needs only a few messages of both. A log that was created again has no message in common with the table.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, OffsetOutOfRange
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from kafka_io.records.last_message import LastMessage
from pipelines.loading.incarnations import incarnations
from pipelines.loading.ledger import TableState
from pipelines.loading.table_log import TableLog, TableSnapshot
from pipelines.loading.work import CommittedRange
from resources.errors import TopicRecreated


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first message of the table that the log does not have; `common` says whether it has any message before it."""

    offset: int
    common: bool


def differing_messages(
    cluster: Cluster, state: TableState, bounds: Mapping[BrokerPartition, Bounds], *, with_idle: bool = False
) -> tuple[dict[BrokerPartition, int], dict[BrokerPartition, KafkaIOError]]:
    """The offsets at which the logs have another message than the last one before the cursor, and errors.

    Only partitions with something to load are asked, or also idle ones. A message that expired or was compacted
    contradicts nothing. If the table and the cluster know the same topic id, no log is asked.
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
        if isinstance(answer, KafkaIOError) and not isinstance(answer, OffsetOutOfRange)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceSearch:
    """Searches in one partition; see `run`."""

    cluster: Cluster
    log: TableLog
    snapshot: TableSnapshot
    state: TableState

    def run(self, partition: BrokerPartition, bound: Bounds) -> Divergence:
        """Find the offset at which the log diverged from the table.

        Offsets before the log's earliest one cannot be compared.

        Raises:
            KafkaIOError: a broker does not answer.
            LakeUnavailable: the table cannot be read.
        """
        by_topic = {
            incarnation.topic: incarnation.ranges for incarnation in incarnations(self.log.entries(self.snapshot))
        }
        ranges = [
            committed
            for committed in by_topic.get(self.state.topic, ())
            if committed.partition == partition and committed.rows and committed.offsets.stop > bound.earliest
        ]
        # The offsets of all rows may not fit into memory, so only the first two of each range are kept.
        heads = [(committed, offsets[:2]) for committed in ranges if (offsets := self._offsets(committed, bound))]
        beyond = bisect_left(heads, True, key=lambda head: self._differs(*head))
        if beyond == 0:
            return Divergence(offset=heads[0][1][0] if heads else bound.earliest, common=False)
        last, _ = heads[beyond - 1]
        offsets = self._offsets(last, bound)
        places = range(len(offsets))
        number = bisect_left(places, True, key=lambda place: self._differs(last, offsets[place : place + 2]))
        after = heads[beyond][1][0] if beyond < len(heads) else last.offsets.stop
        return Divergence(offset=offsets[number] if number < len(offsets) else after, common=True)

    def _offsets(self, committed: CommittedRange, bound: Bounds) -> list[int]:
        return [offset for offset in self.log.row_offsets(self.snapshot, committed) if offset >= bound.earliest]

    def _differs(self, committed: CommittedRange, offsets: Sequence[int]) -> bool:
        """Whether the log has another message at the first of these row offsets, or none; the second one ends it."""
        offset, stop = (*offsets, committed.offsets.stop)[:2]
        stored = self.log.message(self.snapshot, committed, offset)
        message = OffsetRange(committed.partition, offset, stop)
        answer = self.cluster.last_messages(self.state.topic.name, {committed.partition: message})[committed.partition]
        if isinstance(answer, OffsetOutOfRange):
            return True  # the log ends before the message
        if isinstance(answer, KafkaIOError):
            raise answer
        return answer != stored
