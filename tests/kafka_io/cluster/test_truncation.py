"""A log that was truncated and written again is distinguished from one that only grew."""

import pytest

from kafka_io.cluster.truncation import find_truncations
from kafka_io.errors import BrokerError, Corrupt
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartitionResponse,
    LeaderEpochTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka_io.model import BrokerPartition, EpochEnd
from tests.fakes.cluster import EVERYTHING, FakeCluster, Handler, Log
from tests.kafka_io.conftest import OpenBrokers

PARTITION = BrokerPartition(None, 0)
EPOCHS = OffsetForLeaderEpochRequest.API.key
OFFERED = {**EVERYTHING, EPOCHS: OffsetForLeaderEpochRequest.API.versions}


def answering(end: int, *, partition: int = 0, error: int = 0, known: int = 3) -> Handler:
    """A handler that answers with this end of the epoch `known`."""
    answer = LeaderEpochPartitionResponse(error_code=error, partition=partition, leader_epoch=known, end_offset=end)
    topic = LeaderEpochTopicResponse(topic="clicks", partitions=(answer,))
    return lambda _: OffsetForLeaderEpochResponse(topics=(topic,))


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(logs={0: Log(entries=[], end=100)}, offered=OFFERED)


# faults B03, B04
@pytest.mark.parametrize(("end", "truncated_at"), [(50, None), (51, None), (49, 49), (0, 0)])
def test_a_log_whose_epoch_ends_before_the_offset_was_truncated_there(
    cluster: FakeCluster, end: int, truncated_at: int | None, open_brokers: OpenBrokers
) -> None:
    with cluster:
        cluster.brokers[0].handlers[EPOCHS] = answering(end)
        expected = {} if truncated_at is None else {PARTITION: EpochEnd(truncated_at)}
        assert find_truncations(open_brokers(cluster), "clicks", {PARTITION: (50, 3)}) == expected


@pytest.mark.parametrize(("end", "known"), [(-1, -1), (49, 2)])
def test_a_leader_that_does_not_know_the_epoch_does_not_say_that_the_log_is_unchanged(
    cluster: FakeCluster, end: int, known: int, open_brokers: OpenBrokers
) -> None:  # fault A01
    with cluster:
        cluster.brokers[0].handlers[EPOCHS] = answering(end, known=known)
        expected = EpochEnd(None if end < 0 else end, is_exact=False)
        assert find_truncations(open_brokers(cluster), "clicks", {PARTITION: (50, 3)}) == {PARTITION: expected}
        cluster.brokers[0].handlers[EPOCHS] = answering(50, known=2)
        assert find_truncations(open_brokers(cluster), "clicks", {PARTITION: (50, 3)}) == {}


def test_without_authorization_nobody_knows_whether_a_log_was_truncated(
    cluster: FakeCluster, open_brokers: OpenBrokers
) -> None:
    with cluster:
        cluster.brokers[0].handlers[EPOCHS] = answering(-1, error=29)
        assert find_truncations(open_brokers(cluster), "clicks", {PARTITION: (50, 3)}) == {
            PARTITION: EpochEnd(None, is_exact=False)
        }


# fault F09
def test_a_broker_without_the_api_does_not_say_that_the_log_is_unchanged(open_brokers: OpenBrokers) -> None:
    offered = {api: versions for api, versions in OFFERED.items() if api != EPOCHS}
    with FakeCluster(logs={0: Log(entries=[], end=100)}, offered=offered) as cluster:
        assert find_truncations(open_brokers(cluster), "clicks", {PARTITION: (50, 3)}) == {
            PARTITION: EpochEnd(None, is_exact=False)
        }


def test_errors_and_answers_for_others_are_raised(cluster: FakeCluster, open_brokers: OpenBrokers) -> None:
    with cluster:
        brokers = open_brokers(cluster)
        cluster.brokers[0].handlers[EPOCHS] = answering(1, error=-1)
        with pytest.raises(BrokerError):
            find_truncations(brokers, "clicks", {PARTITION: (50, 3)})
        cluster.brokers[0].handlers[EPOCHS] = answering(1, partition=1)
        with pytest.raises(Corrupt, match="clicks 1, which was not requested"):
            find_truncations(brokers, "clicks", {PARTITION: (50, 3)})
