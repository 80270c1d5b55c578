"""A topic that was loaded before is not loaded again because the lake or the name of its cluster is another one."""

from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock
from uuid import UUID

import pytest

from kafka_io.errors import ConnectFailed
from kafka_io.model import BrokerPartition
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.identity import earlier_loads
from pipelines.identity.earlier_loads import FormerName, MirroredOffsets
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.plan.positions import NamedPosition
from pipelines.plan.window import LoadWindow
from pipelines.reports.outcome import TopicLoad
from resources.errors import LakeUnavailable
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import FakeCluster
from tests.fakes.loaders import loader_of
from tests.fakes.records import holding

FROM_EARLIEST = LoadWindow(since=NamedPosition.EARLIEST)


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def load(fake: FakeCluster, lake: Path, *names: str, **options: Any) -> TopicLoad:
    """Load the topic through the first name that the settings give the cluster."""
    cluster = ClusterSettings(bootstrap=",".join(broker.address for broker in fake.bootstrap))
    caps = Caps(attempts=1, request_timeout_s=5)
    settings = Settings(lake=str(lake), clusters=dict.fromkeys(names, cluster), caps=caps)
    with open_cluster(settings, names[0]) as connected:
        return loader_of(settings, connected, no_spark, **{"fetch": fetch_here, **options}).load("clicks")


def test_a_cluster_that_was_renamed_in_the_settings_keeps_its_tables(
    fake: FakeCluster, tmp_path: Path
) -> None:  # fault N17
    with fake:
        assert load(fake, tmp_path, "main").rows == 30
        renamed = load(fake, tmp_path, "events")
        assert (renamed.rows, renamed.retriable) == (0, False)
        assert str(renamed.error).startswith("TableLost: the lake has a table of this topic under the cluster name 'm")
        assert "call the cluster main in the settings again" in str(renamed.error)
        fake.logs[0] = holding(0, 25)
        assert load(fake, tmp_path, "main").rows == 5
        assert load(fake, tmp_path, "events", window=FROM_EARLIEST).rows == 35
        fake.logs[0] = holding(0, 26)
        assert load(fake, tmp_path, "events").rows == 1


def test_a_second_name_of_a_cluster_in_the_settings_has_tables_of_its_own(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        assert load(fake, tmp_path, "main", "events").rows == 30
        assert load(fake, tmp_path, "events", "main").rows == 30


def test_a_topic_of_another_cluster_that_left_the_settings_is_not_taken_for_this_one(
    fake: FakeCluster, tmp_path: Path
) -> None:
    with fake:
        load(fake, tmp_path, "main")
        fake.topic_id = UUID(int=8)
        assert load(fake, tmp_path, "events").rows == 30


def test_a_table_that_another_run_has_just_begun_is_not_lost(fake: FakeCluster, tmp_path: Path) -> None:
    def begun_by_another_run(_state: object) -> str:
        assert load(fake, tmp_path, "main").rows == 30
        return "it was loaded before"

    with fake:
        result = load(fake, tmp_path, "main", evidence=(begun_by_another_run,))
    assert (result.error, result.rows) == (None, 0)


CLICKS = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))


@pytest.mark.parametrize(
    "existing",
    [
        Mock(return_value=None),
        Mock(return_value=Mock(entry=None)),
        Mock(side_effect=LakeUnavailable("no answer")),
    ],
    ids=["no table", "empty table", "unreadable table"],
)
def test_a_former_name_without_rows_of_the_topic_shows_nothing(existing: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_loads, "lake_table", lambda *_: Mock(existing=existing))
    assert FormerName(Mock(clusters=lambda: ["events", "main"]), ["main"])(CLICKS) is None
    assert existing.call_count == 1


def test_offsets_in_the_mirror_group_show_that_the_topic_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a group, or if it cannot be read, nothing is shown."""
    group = Mock(fetch=Mock(return_value={"clicks": {BrokerPartition(None, 0): 5}}))
    monkeypatch.setattr("kafka_io.consumer.group_offsets.group_offsets", lambda *_, **_options: group)
    said = MirroredOffsets(Mock(), "copies")(CLICKS)
    assert said is not None
    assert said.startswith("the consumer group copies (mirror_group) has offsets of this topic")
    views = TopicIdentity(cluster="main", name="views", incarnation="7")
    assert MirroredOffsets(Mock(), "copies")(TableState(topic=views)) is None
    assert MirroredOffsets(Mock(), None)(CLICKS) is None
    group.fetch.side_effect = ConnectFailed("away")
    assert MirroredOffsets(Mock(), "copies")(CLICKS) is None
