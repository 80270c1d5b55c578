"""A coordinator that moves is followed until the attempts are used up, and its answers are checked."""

from collections.abc import Callable, Iterator

import pytest

from kafka_io.consumer.coordinator_offsets import CoordinatorOffsets
from kafka_io.errors import CoordinatorMoved, Corrupt
from kafka_io.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse, FoundCoordinator
from kafka_io.messages.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from kafka_io.model import BrokerPartition
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import CLOSE, EVERYTHING, FakeCluster
from tests.fakes.records import holding
from tests.kafka_io.conftest import ATTEMPTS, OpenBrokers

PARTITION_0 = BrokerPartition(None, 0)
NOT_COORDINATOR = 16


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    offered = {
        **EVERYTHING,
        **{kind.API.key: kind.API.versions for kind in (FindCoordinatorRequest, OffsetCommitRequest)},
    }
    with FakeCluster(logs={0: holding(0, 20)}, offered=offered) as cluster:
        yield cluster


def coordinated_by(fake: FakeCluster, *turns: int) -> Callable[[ReceivedRequest], FindCoordinatorResponse]:
    """Answers with these brokers in turn, and then always with the last one. Hosts may have brackets (fault F13)."""
    remaining = list(turns)

    def answer(_: ReceivedRequest) -> FindCoordinatorResponse:
        number = remaining.pop(0) if remaining[1:] else remaining[0]
        coordinator = FoundCoordinator(
            key="lake", node_id=number, host="[127.0.0.1]", port=fake.brokers[number].port, error_code=0
        )
        return FindCoordinatorResponse(coordinators=(coordinator,))

    return answer


def commit_answer(code: int, *partitions: int) -> OffsetCommitResponse:
    parts = tuple(OffsetCommitPartitionResponse(partition_index=number, error_code=code) for number in partitions)
    return OffsetCommitResponse(topics=(OffsetCommitTopicResponse(name="clicks", partitions=parts),))


@pytest.mark.parametrize("failure", ["moved", "unreachable"])  # fault B01
def test_a_coordinator_that_moved_or_went_away_is_followed(
    failure: str, fake: FakeCluster, open_brokers: OpenBrokers
) -> None:
    find_coordinator = coordinated_by(fake, 0, 1)
    for broker in fake.brokers:
        broker.handlers[FindCoordinatorRequest.API.key] = find_coordinator
    fake.brokers[0].handlers[8] = lambda _: commit_answer(NOT_COORDINATOR, 0) if failure == "moved" else CLOSE
    fake.brokers[1].handlers[8] = lambda _: commit_answer(0, 0)
    CoordinatorOffsets(open_brokers(fake)).commit("lake", {"clicks": {PARTITION_0: 7}})
    assert [len(broker.heard) > 0 for broker in fake.brokers] == [True, True]
    assert len(fake.heard(OffsetCommitRequest.API.key)) == 2


def test_a_coordinator_that_is_never_found_is_an_error_after_all_attempts(
    fake: FakeCluster, open_brokers: OpenBrokers
) -> None:
    for broker in fake.brokers:
        broker.handlers[FindCoordinatorRequest.API.key] = coordinated_by(fake, 0)
        broker.handlers[8] = lambda _: commit_answer(NOT_COORDINATOR, 0)
    with pytest.raises(CoordinatorMoved, match=r"cluster=main broker=0@.* topic=clicks partition=0"):
        CoordinatorOffsets(open_brokers(fake)).commit("lake", {"clicks": {PARTITION_0: 7}})
    assert len(fake.heard(OffsetCommitRequest.API.key)) == ATTEMPTS


def test_an_answer_without_a_committed_offset_is_corrupt(fake: FakeCluster, open_brokers: OpenBrokers) -> None:
    for broker in fake.brokers:
        broker.handlers[FindCoordinatorRequest.API.key] = coordinated_by(fake, 0)
        broker.handlers[8] = lambda _: commit_answer(0, 1)
    with pytest.raises(Corrupt, match="clicks 1, which was not requested"):
        CoordinatorOffsets(open_brokers(fake)).commit("lake", {"clicks": {PARTITION_0: 7}})
