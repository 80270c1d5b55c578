"""Cursors are copied to a consumer group after each commit. If that fails, the load only has a warning."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from kafka_io.consumer.group_offsets import group_offsets
from kafka_io.errors import AuthorizationFailed, DeadlineExceeded, KafkaIOError
from kafka_io.model import BrokerPartition
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.plan.positions import NamedPosition
from pipelines.plan.window import LoadWindow
from pipelines.reports.group_mirror import GroupMirror, MirroredCursors
from pipelines.reports.outcome import TopicLoad
from resources.settings.settings import Settings
from tests.live import LiveCluster, numbered
from tests.nodes import connected
from tests.pipelines.loaded import Loaded
from tests.publishing import publish_by_settings

GROUP_OFFSETS = "kafka_io.consumer.group_offsets.group_offsets"
P0, P1 = BrokerPartition(None, 0), BrokerPartition(None, 1)


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[Loaded]:
    """The topic `clicks` with two partitions; loads copy its cursors to the group `lake`."""
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", partitions=2)
    with ModernBrokerServer(config) as server:
        settings = tmp_path / "penstock.toml"
        result = f'bootstrap = "127.0.0.1:{server.port}"\nmirror_group = "lake"\n'
        settings.write_text(f'lake = "lake"\n[clusters.main]\n{result}')
        made = Loaded(settings)
        publish(made, 20)
        yield made


def publish(topic: Loaded, count: int) -> None:
    publish_by_settings(Settings.load(topic.settings), "clicks", numbered(count), batch_size=10)


def group_cursors(topic: Loaded) -> dict[BrokerPartition, int | None]:
    with topic.cluster() as cluster:
        return group_offsets(cluster).fetch("lake").get("clicks", {})


def test_every_load_copies_the_cursors_to_the_group(topic: Loaded) -> None:
    topic.load()
    assert group_cursors(topic) == {P0: 10, P1: 10}
    publish(topic, 10)
    assert topic.load().warnings == ()
    assert group_cursors(topic) == {P0: 20, P1: 10}
    with topic.cluster() as cluster:
        group_offsets(cluster).commit("lake", {"clicks": {P0: 3}})
    assert topic.load().rows == 0
    assert group_cursors(topic) == {P0: 20, P1: 10}


def test_offsets_of_the_group_move_no_cursor_and_show_that_a_lake_is_missing(topic: Loaded) -> None:  # fault N17
    with topic.cluster() as cluster:
        group_offsets(cluster).commit("lake", {"clicks": {P0: 7, P1: 10}})
    with topic.loader() as loader:
        refused = loader.load("clicks")
    assert refused.rows == 0
    assert str(refused.error).startswith("TableLost: the consumer group lake (mirror_group) has offsets of this topic")
    assert "`penstock offsets import clicks --from group:lake`" in str(refused.error)
    assert topic.load(window=LoadWindow(since=NamedPosition.EARLIEST)).rows == 20
    assert topic.load().rows == 0


def test_cursors_are_copied_only_after_their_commit(topic: Loaded) -> None:
    seen: list[tuple[MirroredCursors, int, int]] = []

    def look(_topic: str, cursors: MirroredCursors) -> Sequence[str]:
        seen.append((cursors, topic.version, topic.covered(P0)[1]))
        return ("something to know",)

    assert topic.load(reports={"committed": look}).warnings == ("something to know",)
    assert seen == [({P0: 10, P1: 10}, 1, 10)]


@contextmanager
def member_of(group: str, topic: Loaded) -> Iterator[None]:
    """Somebody is a member of the group, and has all partitions."""
    bootstrap = Settings.load(topic.settings).clusters["main"].bootstrap
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false"})
    try:
        consumer.subscribe(["clicks"])
        while not consumer.assignment():
            consumer.poll(0.2)
        yield
    finally:
        consumer.close()


def test_a_group_with_members_refuses_and_the_load_succeeds_with_a_warning(topic: Loaded) -> None:
    with member_of("lake", topic):
        load = topic.load()
    assert (load.rows, load.error) == (20, None)
    [warning] = load.warnings
    assert warning.startswith("the cursors were not copied to the consumer group lake: ")
    assert "topic=clicks" in warning
    assert topic.problems() == ()


class Offsets:
    """Group offsets that answer with an error."""

    def __init__(self, error: KafkaIOError) -> None:
        self.error = error
        self.asked = 0

    def commit(self, _group: str, _offsets: object) -> None:
        """Fail."""
        self.asked += 1
        raise self.error

    def fetch(self, _group: str) -> None:
        """Fail, as a load does not need the answer."""
        raise self.error


@pytest.mark.parametrize(("error", "asked"), [(DeadlineExceeded("silence"), 1), (AuthorizationFailed("no"), 3)])
def test_brokers_that_do_not_answer_are_asked_once_in_a_run(
    error: KafkaIOError, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = Offsets(error)
    monkeypatch.setattr(GROUP_OFFSETS, lambda _cluster, **_: offsets)
    cluster: Any = None
    mirror_cursors = GroupMirror(cluster, "lake")
    warnings = [mirror_cursors(name, {P0: 1}) for name in ("a", "b", "c")]
    assert warnings == [(f"the cursors were not copied to the consumer group lake: {error}",)] * 3
    assert offsets.asked == asked
    assert mirror_cursors("empty", {}) == ()


def test_a_mirror_that_fails_is_a_warning_of_a_load(topic: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GROUP_OFFSETS, lambda _cluster, **_: Offsets(DeadlineExceeded("silence")))
    load: TopicLoad = topic.load()
    assert (load.rows, load.error) == (20, None)
    assert load.warnings == ("the cursors were not copied to the consumer group lake: silence",)


@pytest.mark.zookeeper
def test_a_group_of_0_7_gets_the_cursors_in_zookeeper(live: LiveCluster) -> None:
    live.publish("clicks", numbered(100))
    text = live.settings.read_text()
    live.settings.write_text(text.replace("[caps]", 'mirror_group = "lake"\n[caps]'))
    topic = Loaded(live.settings)
    topic.load()
    with connected(live.zookeeper) as client:
        path = "/consumers/lake/offsets/clicks"
        nodes = {name: client.get(f"{path}/{name}")[0] for name in client.get_children(path)}
    ids = [BrokerPartition(broker, partition) for broker in (0, 1) for partition in (0, 1)]
    assert nodes == {str(id_): str(topic.covered(id_)[1]).encode() for id_ in ids}
