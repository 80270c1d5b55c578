"""A broker that answers old metadata does not hide that the topic was deleted and created again (fault B17).

Brokers from 2.8 to 3.0 know topic ids, but a Fetch names the topic. A broker that lost its controller still answers
with the metadata that it had.
"""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch
from uuid import UUID

import pytest

from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.list_offsets import ListOffsetsRequest
from kafka_io.messages.metadata import MetadataRequest
from pipelines.cursors.import_offsets import import_offsets, plan_import
from pipelines.load import committed
from pipelines.plan.positions import NamedPosition
from pipelines.verify.verify import verify
from resources.errors import TopicRecreated
from resources.settings.choices import Choices
from tests.fakes.cluster import CLOSE, EVERYTHING, FakeCluster, Log
from tests.fakes.records import holding, numbered, table, values
from tests.pipelines.load.test_choices import A, load, loader_of, newest
from tests.pipelines.load.test_run_target import load as load_in_steps

METADATA = MetadataRequest.API.key
STALE, LEADER = 0, 1
"""The broker that is asked first, and the one that leads the partition."""
RECREATED = "TopicRecreated: the topic was deleted and created again while it was read: it has topic id "
REFUSED = "LeaderMoved: the broker has no topic with this id"
"""The error of a leader from 3.1 on."""


def create(fake: FakeCluster, number: int, stop: int) -> None:
    """Create the topic, or delete it and create it again, with these records."""
    fake.topic_id = UUID(int=number)
    fake.logs = {0: holding(0, stop, incarnation=f"topic {number}")}
    fake.logs[0].leader = LEADER


@pytest.fixture(params=[12, 13], ids=["3.0", "3.1"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeCluster]:
    """A cluster of these brokers."""
    offered = {**EVERYTHING, FetchRequest.API.key: (0, request.param)}
    with FakeCluster(logs={}, offered=offered) as cluster:
        create(cluster, 1, 20)
        yield cluster


def recreate(fake: FakeCluster, stop: int) -> None:
    """Create the topic again; the stale broker knows only the former one."""
    create(fake, 2, stop)
    lag(fake)


def lag(fake: FakeCluster) -> None:
    """Let the stale broker describe the former topic from now on."""
    metadata = fake.brokers[STALE].handlers[METADATA]

    def stale(received: object) -> object:
        fake.topic_id = UUID(int=1)
        try:
            return metadata(received)  # type: ignore[arg-type]
        finally:
            fake.topic_id = UUID(int=2)

    fake.brokers[STALE].handlers[METADATA] = stale


def recover(fake: FakeCluster) -> None:
    """Let the stale broker hear of its controller again."""
    fake.brokers[STALE].handlers[METADATA] = fake.metadata


def test_records_of_a_new_topic_are_not_committed_behind_those_of_the_former_one(
    fake: FakeCluster, tmp_path: Path
) -> None:
    assert load(fake, tmp_path).rows == 20
    recreate(fake, 50)
    assert (load(fake, tmp_path).error or "").startswith((RECREATED, REFUSED))
    assert values(tmp_path) == numbered(0, 20, "topic 1")
    recover(fake)
    assert load(fake, tmp_path, on_recreated="restart").rows == 50
    assert values(tmp_path) == [*numbered(0, 20, "topic 1"), *numbered(0, 50, "topic 2")]
    assert verify(table(tmp_path)).problems == ()


def test_rows_of_the_former_topic_are_not_taken_back(fake: FakeCluster, tmp_path: Path) -> None:
    assert load(fake, tmp_path).rows == 20
    recreate(fake, 10)
    assert (load(fake, tmp_path, on_truncated="rewind").error or "").startswith(RECREATED)
    assert values(tmp_path) == numbered(0, 20, "topic 1")


def test_a_new_table_does_not_begin_under_the_id_of_the_former_topic(fake: FakeCluster, tmp_path: Path) -> None:
    recreate(fake, 30)
    assert (load(fake, tmp_path).error or "").startswith(RECREATED)
    assert values(tmp_path) == []
    recover(fake)
    assert load(fake, tmp_path).rows == 30
    assert values(tmp_path) == numbered(0, 30, "topic 2")


def test_partitions_begin_under_the_id_of_the_present_topic(fake: FakeCluster, tmp_path: Path) -> None:
    recreate(fake, 30)
    assert (load(fake, tmp_path, since=NamedPosition.LATEST).error or "").startswith(RECREATED)
    assert table(tmp_path).snapshot().entry is None


def test_a_leader_that_cannot_be_reached_does_not_keep_other_partitions_from_loading(
    fake: FakeCluster, tmp_path: Path
) -> None:
    fake.logs[1] = holding(0, 10)
    fake.logs[1].leader = STALE
    listing = ListOffsetsRequest.API.key
    fake.brokers[LEADER].handlers[listing] = lambda _: CLOSE
    result = load(fake, tmp_path)
    assert (result.error or "").startswith("ConnectionLost")
    assert (values(tmp_path), values(tmp_path, 1)) == ([], numbered(0, 10))
    assert METADATA not in {request.api.key for request in fake.brokers[LEADER].heard}


def test_offsets_before_the_log_of_a_new_topic_are_no_gap_of_the_former_one(fake: FakeCluster, tmp_path: Path) -> None:
    assert load(fake, tmp_path).rows == 20
    recreate(fake, 0)
    fake.logs = {0: Log(entries=[], start=30, end=30, leader=LEADER)}
    assert (load(fake, tmp_path, on_expired="skip").error or "").startswith(RECREATED)
    assert newest(tmp_path).covered == {A: (0, 20)}


def test_a_table_does_not_begin_under_the_id_of_the_former_topic_where_another_loader_ended(
    fake: FakeCluster, tmp_path: Path
) -> None:
    recreate(fake, 30)
    with loader_of(fake, tmp_path) as loader, pytest.raises(TopicRecreated, match="it has topic id"):
        plan_import(loader.run, table(tmp_path), "clicks", {A: 10}, source="group:old")
    recover(fake)
    with loader_of(fake, tmp_path) as loader:
        import_offsets(table(tmp_path), plan_import(loader.run, table(tmp_path), "clicks", {A: 10}, source="group:old"))
    assert load(fake, tmp_path).rows == 20
    assert values(tmp_path) == numbered(10, 30, "topic 2")


def test_a_run_whose_later_step_sees_the_former_topic_does_not_end_as_if_all_were_loaded(
    fake: FakeCluster, tmp_path: Path
) -> None:
    create(fake, 2, 50)
    assert load_in_steps(fake, tmp_path, run=10).rows == 10

    def fall_behind(step: str) -> None:
        if step == "loaded":
            lag(fake)

    with patch.object(committed, "failpoint", fall_behind):
        result = load_in_steps(fake, tmp_path, choices=Choices(on_recreated="restart"))
    assert (result.rows, (result.error or "")[: len(RECREATED)]) == (10, RECREATED)
    assert values(tmp_path) == numbered(0, 20, "topic 2")
