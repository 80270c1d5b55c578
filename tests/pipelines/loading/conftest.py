"""A fake cluster of the topic `clicks`, with known records in two partitions."""

from uuid import UUID

import pytest

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.records import holding


@pytest.fixture
def fake() -> FakeCluster:
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    return FakeCluster(logs={0: holding(0, 20), 1: holding(0, 10)}, offered=offered, topic_id=UUID(int=7))
