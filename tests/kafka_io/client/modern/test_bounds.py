"""Bounds come from the leaders, two questions for each; an error hides only the partitions it concerns."""

import pytest

from kafka_io.client.modern.bounds import bounds_of
from kafka_io.errors import ConnectFailed, Corrupt, KafkaIOError, LeaderMoved
from kafka_io.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafka_io.model import Bounds
from kafka_io.wire.conversation import Received
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.kafka_io.client.modern.conftest import OpenBrokers

LIST_OFFSETS = ListOffsetsRequest.API.key
FIRST, SECOND = Bounds(earliest=3, latest=40, epoch=5), Bounds(earliest=0, latest=7, epoch=5)


def two() -> dict[int, Log]:
    """A partition on each broker; the first has an open transaction from 38 on."""
    return {0: Log(entries=[], start=3, end=40, stable=38), 1: Log(entries=[], end=7, leader=1)}


@pytest.mark.parametrize("version", range(11))
def test_every_version_tells_the_same_bounds(version: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two(), offered={**EVERYTHING, LIST_OFFSETS: (version, version)}) as cluster:
        assert bounds_of(open_brokers(cluster), "clicks", [0, 1], committed=False) == {0: FIRST, 1: SECOND}
        assert len(cluster.heard(LIST_OFFSETS)) == 4


def test_the_latest_of_committed_records_is_the_stable_offset(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        found = bounds_of(open_brokers(cluster), "clicks", [0, 1], committed=True)
        assert found == {0: Bounds(earliest=3, latest=38, epoch=5), 1: SECOND}


def test_a_broker_that_is_down_hides_its_partitions_only(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        cluster.brokers[1].close()
        found = bounds_of(open_brokers(cluster), "clicks", [0, 1], committed=False)
        assert found[0] == FIRST
        assert isinstance(found[1], ConnectFailed)
        assert found[1].where.partition == 1


# B03
def test_a_leader_that_moves_is_asked_where_it_went(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        answer = cluster.brokers[0].handlers[LIST_OFFSETS]

        def moving(one: Received) -> ListOffsetsResponse:
            cluster.logs[0].leader = 1
            return answer(one)  # type: ignore[no-any-return] # a handler of the fake's

        cluster.brokers[0].handlers[LIST_OFFSETS] = moving
        assert bounds_of(open_brokers(cluster), "clicks", [0, 1], committed=False) == {0: FIRST, 1: SECOND}


def test_a_partition_without_leader_is_an_error_of_its_own(open_brokers: OpenBrokers) -> None:
    logs = two()
    logs[0].leader = -1
    with FakeCluster(logs=logs) as cluster:
        found = bounds_of(open_brokers(cluster), "clicks", [0, 1, 2], committed=False)
        assert found[1] == SECOND
        assert isinstance(found[0], LeaderMoved)
        assert isinstance(found[2], LeaderMoved)


def test_an_answer_without_a_partition_is_refused(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=two()) as cluster:
        cluster.brokers[0].handlers[LIST_OFFSETS] = lambda _: ListOffsetsResponse(topics=())
        found: dict[int, Bounds | KafkaIOError] = bounds_of(open_brokers(cluster), "clicks", [0, 1], committed=False)
        assert isinstance(found[0], Corrupt)
        assert found[1] == SECOND
