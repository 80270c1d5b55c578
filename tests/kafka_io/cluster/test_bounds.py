"""Bounds and times come from the leaders, with a few requests to each; an error hides only its partitions."""

from dataclasses import replace
from typing import Any

import pytest

from kafka_io.brokers.leaders import PartitionAnswers
from kafka_io.cluster.bounds import bounds_of, ends_at, offsets_at
from kafka_io.errors import ConnectFailed, Corrupt, LeaderMoved
from kafka_io.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_io.model import MAX_OFFSET, Bounds, TopicPartition
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import EVERYTHING, FakeCluster, Handler, Log
from tests.kafka_io.conftest import OpenBrokers

LIST_OFFSETS = ListOffsetsRequest.API.key
PLACES = ONE, TWO = TopicPartition("clicks", 0), TopicPartition("clicks", 1)
THREE = TopicPartition("clicks", 2)
FIRST, SECOND = Bounds(earliest=3, latest=40, epoch=5), Bounds(earliest=0, latest=7, epoch=5)


def two() -> dict[int, Log]:
    """A partition on each broker; the first has an open transaction from 38 on."""
    return {0: Log(entries=[], start=3, end=40, stable=38), 1: Log(entries=[], end=7, leader=1)}


@pytest.mark.parametrize("version", range(11))
def test_every_version_gives_the_same_bounds(version: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two(), offered={**EVERYTHING, LIST_OFFSETS: (version, version)}) as cluster:
        assert bounds_of(open_brokers(cluster), PLACES, committed=False) == {ONE: FIRST, TWO: SECOND}
        assert len(cluster.heard(LIST_OFFSETS)) == 4


def test_the_latest_of_committed_records_is_the_stable_offset(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        answers = bounds_of(open_brokers(cluster), PLACES, committed=True)
        assert answers == {ONE: Bounds(earliest=3, latest=38, epoch=5, held_back=2), TWO: SECOND}


# fault B14
def test_a_log_that_moves_on_between_the_questions_does_not_end_before_it_begins(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        answer, log = cluster.brokers[0].handlers[LIST_OFFSETS], cluster.logs[0]

        def moving(received: ReceivedRequest) -> ListOffsetsResponse:
            response = answer(received)
            log.start, log.end, log.stable = log.end, log.end + 100, log.end + 100
            return response  # type: ignore[no-any-return] # a handler of the fake's

        cluster.brokers[0].handlers[LIST_OFFSETS] = moving
        answers = bounds_of(open_brokers(cluster), [ONE], committed=True)
    assert answers == {ONE: Bounds(earliest=3, latest=140, epoch=5, held_back=100)}


def test_a_broker_that_is_down_hides_only_its_partitions(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        cluster.brokers[1].close()
        answers = bounds_of(open_brokers(cluster), PLACES, committed=False)
        assert answers[ONE] == FIRST
        failed = answers[TWO]
        assert isinstance(failed, ConnectFailed)
        assert failed.where.partition == 1


# fault B03
def test_a_moving_leader_is_looked_up_again(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        answer = cluster.brokers[0].handlers[LIST_OFFSETS]

        def moving(received: ReceivedRequest) -> ListOffsetsResponse:
            cluster.logs[0].leader = 1
            return answer(received)  # type: ignore[no-any-return] # a handler of the fake's

        cluster.brokers[0].handlers[LIST_OFFSETS] = moving
        assert bounds_of(open_brokers(cluster), PLACES, committed=False) == {ONE: FIRST, TWO: SECOND}


def test_a_partition_without_leader_is_an_error_of_its_own(open_brokers: OpenBrokers) -> None:
    logs = two()
    logs[0].leader = -1
    with FakeCluster(logs=logs) as cluster:
        answers = bounds_of(open_brokers(cluster), [*PLACES, THREE], committed=False)
        assert answers[TWO] == SECOND
        assert isinstance(answers[ONE], LeaderMoved)
        assert isinstance(answers[THREE], LeaderMoved)


def test_an_answer_without_a_partition_is_refused(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        cluster.brokers[0].handlers[LIST_OFFSETS] = lambda _: ListOffsetsResponse(topics=())
        answers: PartitionAnswers[Bounds] = bounds_of(open_brokers(cluster), PLACES, committed=False)
        assert isinstance(answers[ONE], Corrupt)
        assert answers[TWO] == SECOND


@pytest.mark.parametrize("end", [-2, MAX_OFFSET + 1, 2**63 - 1])  # fault H01
@pytest.mark.parametrize("version", [0, 10])
def test_an_end_that_no_log_can_have_hides_only_its_partition(
    version: int, end: int, open_brokers: OpenBrokers
) -> None:
    logs = two()
    logs[0].end = logs[0].stable = end
    with FakeCluster(logs=logs, offered={**EVERYTHING, LIST_OFFSETS: (version, version)}) as cluster:
        answers = bounds_of(open_brokers(cluster), PLACES, committed=True)
        failed = answers[ONE]
        assert isinstance(failed, Corrupt)
        assert (failed.where.partition, answers[TWO]) == (0, SECOND)


class Clocked:
    """Makes the brokers answer requests for a time with these offsets by partition; None means no offset."""

    def __init__(self, cluster: FakeCluster, offsets: dict[int, int | None]) -> None:
        self.times: set[int] = set()
        for broker in cluster.brokers:
            broker.handlers[LIST_OFFSETS] = self._answering(broker.handlers[LIST_OFFSETS], offsets)

    def _answering(self, other: Handler, offsets: dict[int, int | None]) -> Handler:
        def answer(received: ReceivedRequest) -> ListOffsetsResponse:
            request: Any = received.request
            response: ListOffsetsResponse = other(received)
            [requested], [topic] = request.topics, response.topics
            if requested.partitions[0].timestamp < 0:
                return response
            self.times |= {partition.timestamp for partition in requested.partitions}
            parts = tuple(
                _answer_with(partition, offsets[partition.partition_index], received.version)
                for partition in topic.partitions
            )
            return ListOffsetsResponse(topics=(replace(topic, partitions=parts),))

        return answer


def _answer_with(
    answer: ListOffsetsPartitionResponse, offset: int | None, version: int
) -> ListOffsetsPartitionResponse:
    if version == 0:
        return replace(answer, old_style_offsets=() if offset is None else (offset,))
    return replace(answer, offset=-1 if offset is None else offset)


@pytest.mark.parametrize("version", range(1, 11))
def test_the_offset_at_a_time_is_the_latest_if_all_records_are_older(version: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two(), offered={**EVERYTHING, LIST_OFFSETS: (version, version)}) as cluster:
        clocked = Clocked(cluster, {0: 17, 1: None})
        assert offsets_at(open_brokers(cluster), PLACES, 1_700_000_000_000, committed=False) == {ONE: 17, TWO: 7}
        assert clocked.times == {1_700_000_000_000}


def test_no_record_is_skipped_if_a_broker_knows_only_the_times_of_segments(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two(), offered={**EVERYTHING, LIST_OFFSETS: (0, 0)}) as cluster:
        Clocked(cluster, {0: None, 1: 5})
        assert offsets_at(open_brokers(cluster), PLACES, 1000, committed=True) == {ONE: 3, TWO: 5}


@pytest.mark.parametrize("offset", [39, None])
def test_the_offset_at_a_time_is_never_above_the_stable_offset(offset: int | None, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        Clocked(cluster, {0: offset, 1: 0})
        assert offsets_at(open_brokers(cluster), PLACES, 1000, committed=True) == {ONE: 38, TWO: 0}


def test_a_time_before_1970_does_not_mean_latest_or_earliest(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        clocked = Clocked(cluster, {0: 3})
        assert offsets_at(open_brokers(cluster), [ONE], -1, committed=False) == {ONE: 3}
        assert clocked.times == {0}


def test_an_invalid_offset_for_a_time_hides_only_its_partition(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        Clocked(cluster, {0: -7, 1: 2})
        cluster.logs[2] = Log(entries=[], end=1, leader=-1)
        answers = offsets_at(open_brokers(cluster), [*PLACES, THREE], 1000, committed=False)
        assert isinstance(answers[ONE], Corrupt)
        assert answers[TWO] == 2
        assert isinstance(answers[THREE], LeaderMoved)


@pytest.mark.parametrize(("older", "end"), [((), 20), ((0,), 30), ((20,), 40), ((30,), 40), ((40,), 40)])
def test_the_end_for_a_time_is_a_segment_later_if_brokers_know_only_the_times_of_segments(  # fault U17
    older: tuple[int, ...], end: int, open_brokers: OpenBrokers
) -> None:
    """The log has the segments [0, 20), [20, 30) and [30, 40). `older` is the newest not written to since the time."""
    with FakeCluster(logs=two(), offered={**EVERYTHING, LIST_OFFSETS: (0, 0)}) as cluster:

        def answer(received: ReceivedRequest) -> ListOffsetsResponse:
            request: Any = received.request
            latest = request.topics[0].partitions[0].timestamp == -1
            offsets = (40, 30, 20, 0) if latest else older
            partition = ListOffsetsPartitionResponse(partition_index=0, error_code=0, old_style_offsets=offsets)
            return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="clicks", partitions=(partition,)),))

        cluster.brokers[0].handlers[LIST_OFFSETS] = answer
        assert ends_at(open_brokers(cluster), [ONE], 1000, committed=True) == {ONE: end}


def test_the_end_for_a_time_is_exact_if_brokers_know_the_times_of_records(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        Clocked(cluster, {0: 17, 1: None})
        assert ends_at(open_brokers(cluster), PLACES, 1000, committed=False) == {ONE: 17, TWO: 7}
