"""If the log no longer holds what was loaded, the load stops before it reads or writes anything."""

from pathlib import Path
from typing import NoReturn
from uuid import UUID

import pytest

from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartitionResponse,
    LeaderEpochTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from pipelines.reports.outcome import TopicLoad
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.fakes.loaders import loader_of

EPOCHS = OffsetForLeaderEpochRequest.API.key


def no_spark() -> NoReturn:
    pytest.fail("nothing is to be fetched")


def load(fake: FakeCluster, folder: Path) -> TopicLoad:
    """Load what is new, which is nothing: a first load takes note of where the log ends."""
    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    caps = Caps(attempts=1, request_timeout_s=5)
    settings = Settings(lake=str(folder), clusters={"main": ClusterSettings(bootstrap=bootstrap)}, caps=caps)
    with open_cluster(settings, "main") as cluster:
        return loader_of(settings, cluster, no_spark, start="latest").load("clicks")


@pytest.fixture
def fake() -> FakeCluster:
    offered = {**EVERYTHING, EPOCHS: OffsetForLeaderEpochRequest.API.versions}
    return FakeCluster(logs={0: Log(entries=[], end=100)}, offered=offered, topic_id=UUID(int=7))


def ending_at(end: int) -> OffsetForLeaderEpochResponse:
    """The answer of a leader about an older epoch."""
    result = LeaderEpochPartitionResponse(error_code=0, partition=0, leader_epoch=5, end_offset=end)
    return OffsetForLeaderEpochResponse(topics=(LeaderEpochTopicResponse(topic="clicks", partitions=(result,)),))


# faults B03, B04
def test_a_log_that_was_truncated_and_written_again_is_refused_with_the_range(
    fake: FakeCluster, tmp_path: Path
) -> None:
    with fake:
        assert load(fake, tmp_path).error is None
        fake.logs[0].epoch = 6
        fake.brokers[0].handlers[EPOCHS] = lambda _: ending_at(40)
        refused = load(fake, tmp_path)
        assert refused.error == (
            "LogTruncated: offsets [40, 100) are in the table, but the log was truncated at 40 and written again; "
            'on_truncated = "rewind" takes the old rows back '
            "[cluster=main topic=clicks partition=0 offset=40] (PS-303)"
        )


def test_another_leader_of_the_same_log_is_no_reason_to_refuse(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        first = load(fake, tmp_path)
        fake.logs[0].epoch = 6
        fake.brokers[0].handlers[EPOCHS] = lambda _: ending_at(100)
        again = load(fake, tmp_path)
        assert (again.error, again.version) == (None, first.version)


def test_no_broker_is_asked_about_truncation_while_the_leader_stays(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        load(fake, tmp_path)
        assert fake.heard(EPOCHS) == []


# faults B05, B06
def test_a_topic_with_another_id_is_another_topic(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        fake.topic_id = UUID(int=8)
        error = load(fake, tmp_path).error
        assert error is not None
        assert error.startswith("TopicRecreated: the topic is not the one that the table holds (topic id AAAAAAAA")


# faults B05, B14
@pytest.mark.parametrize(("start", "end", "kind"), [(0, 99, "CursorAheadOfLog"), (101, 120, "CursorExpired")])
def test_a_cursor_outside_of_the_log_is_refused(
    start: int, end: int, kind: str, fake: FakeCluster, tmp_path: Path
) -> None:
    with fake:
        load(fake, tmp_path)
        fake.logs[0].start, fake.logs[0].end = start, end
        error = load(fake, tmp_path).error
        assert error is not None
        assert error.startswith(kind)
