"""Fetches the beginnings of many planned ranges together, from 0.8 on, so that not each small range needs a request."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from kafka_io.brokers.cluster_metadata import ClusterMetadata, Leader, topic_id_text
from kafka_io.brokers.leaders import PartitionLeaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.errors import KafkaIOError
from kafka_io.messages.fetch import BOUNDED_SINCE, FetchPartitionResponse
from kafka_io.model import TopicPartition
from kafka_io.reader.modern_fetch import MAX_WAIT_MS, fetch, fetch_request, max_fetch_version
from kafka_io.reader.reader import PlannedRange, ReadSettings

FirstAnswer = Callable[[], FetchPartitionResponse | None]
"""Returns the answer to a fetch at the start of a range, if there is one."""

_MIN_TOGETHER, _MAX_TOGETHER = 2, 100


class FirstFetches:
    """The answers to the first fetch of each range. The ranges are read one after the other, in this order.

    When the answer for a range is needed, its broker is also asked for the ranges behind it that this broker serves.
    A broker fills its answer in the order of the request (KIP-74): a large range leaves no room for those behind it, so
    nothing is fetched twice. Answers wait in memory for their turn; all of them together have at most `fetch_bytes`.

    An answer saves a request, and nothing depends on it. If it is missing, empty or an error, the range is fetched
    alone, with retries, and raises its own error. If a request for many ranges fails or gives no records at all, no
    broker is asked for many again.
    """

    def __init__(self, metadata: ClusterMetadata, ranges: Sequence[PlannedRange], read_settings: ReadSettings) -> None:
        self._metadata = metadata
        self._ranges = ranges
        self._read_settings = read_settings
        self._answers: dict[int, FetchPartitionResponse] = {}  # by the number of the range
        self._is_useful = True

    def take(self, number: int) -> FetchPartitionResponse | None:
        """The answer with the first records of this range; None if the range must be fetched alone."""
        has_followers = number + 1 < len(self._ranges)
        if self._is_useful and has_followers and number not in self._answers:
            self._is_useful = False
            with suppress(KafkaIOError):
                self._is_useful = self._request(number)
        return self._answers.pop(number, None)

    def _request(self, number: int) -> bool:
        """Send one request for this range and those behind it. Returns whether such requests are useful."""
        fetch_bytes = self._read_settings.sizes.fetch_bytes
        room = fetch_bytes - sum(len(answer.records or b"") for answer in self._answers.values())
        if room < fetch_bytes // 2:
            return True
        connection, leaders, numbers = self._served_together(number)
        if len(leaders) < _MIN_TOGETHER:
            return True
        request = fetch_request(
            leaders,
            {partition: (self._ranges[at].offsets.start, room) for partition, at in numbers.items()},
            max_bytes=room,
            committed=self._read_settings.committed,
            max_wait_ms=MAX_WAIT_MS,
            rack=self._read_settings.rack,
        )
        if connection.versioned(request, max_version=max_fetch_version(leaders.values())).version < BOUNDED_SINCE:
            return False  # each partition would get as much
        answers = fetch(connection, leaders, request)
        for partition, answer in answers.items():
            if answer.records and not answer.error_code:
                self._answers[numbers[partition]] = answer
            elif answer.preferred_read_replica >= 0:
                self._metadata.prefer_replica(partition.topic, partition.partition, answer.preferred_read_replica)
        return any(answer.records or answer.preferred_read_replica >= 0 for answer in answers.values())

    def _served_together(
        self, number: int
    ) -> tuple[ModernBrokerConnection, PartitionLeaders, Mapping[TopicPartition, int]]:
        """The broker of this range, and the partitions that it serves, each with its leader and its next range.

        Ranges that can only be read alone are left out: their topic was replaced, their leader is older than the one of
        the plan, or a replica could not be read.
        """
        first = self._ranges[number]
        connection, _ = self._metadata.read_from(first.topic, first.offsets.partition.partition, epoch=first.epoch)
        leaders: dict[TopicPartition, Leader] = {}
        numbers: dict[TopicPartition, int] = {}
        for at in range(number, min(number + _MAX_TOGETHER, len(self._ranges))):
            planned = self._ranges[at]
            partition = TopicPartition(planned.topic, planned.offsets.partition.partition)
            # A request names each partition once, so a second range of the same partition waits for its turn.
            if (
                at in self._answers
                or partition in numbers
                or self._metadata.leader_only(planned.topic, partition.partition)
            ):
                continue
            with suppress(KafkaIOError):  # it has no leader now
                serving, leader = self._metadata.read_from(planned.topic, partition.partition, epoch=planned.epoch)
                if serving is connection and planned.is_for(topic_id_text(leader.topic_id)):
                    leaders[partition], numbers[partition] = leader, at
        return connection, leaders, numbers
