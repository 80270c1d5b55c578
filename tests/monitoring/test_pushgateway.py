"""A real Pushgateway takes the metrics of loads and of `penstock metrics --push` in the place of the last ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from pipelines.reports.load_metrics import LoadMetrics
from pipelines.reports.outcome import PartitionLoad, TopicLoad
from resources.settings.metrics import MetricsSettings
from resources.settings.settings import Settings
from tests.docs.pages import ROOT
from tests.live import numbered
from tests.monitoring.prometheus_server import Pushgateway
from tests.publishing import publish_by_settings

pytestmark = pytest.mark.prometheus
Sample = tuple[str, frozenset[tuple[str, str]]]
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def gateway() -> Iterator[Pushgateway]:
    with Pushgateway().start() as server:
        yield server


def samples(gateway: Pushgateway, name: str, **labels: str) -> dict[Sample, float]:
    """The samples of the gateway whose name begins so, and that have these labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(gateway.page())
        for sample in family.samples
        if sample.name.startswith(name) and labels.items() <= sample.labels.items()
    }


def groups(gateway: Pushgateway) -> set[frozenset[tuple[str, str]]]:
    """The grouping keys of the gateway."""
    return {labels for _, labels in samples(gateway, "push_time_seconds")}


def loaded(topic: str, **gaps: int) -> TopicLoad:
    part = PartitionLoad(offsets=OffsetRange(BrokerPartition(None, 0), 0, 10), rows=10, gaps=gaps)
    return TopicLoad(topic=topic, table="/lake", rows=10, partitions=(part,))


def test_a_load_replaces_all_metrics_of_the_last_one(gateway: Pushgateway) -> None:
    push = LoadMetrics(MetricsSettings(push_url=gateway.url), "replaced")
    topic = 'odd/"topic\\ name'
    assert push(loaded(topic, expired=3, compacted=1)) == []
    before, key = samples(gateway, "penstock_load_", cluster="replaced"), groups(gateway)
    assert {labels for _, labels in before} >= {
        frozenset({"job": "penstock_load", "instance": "", "cluster": "replaced", "topic": topic}.items())
    }
    assert push(loaded(topic, compacted=2)) == []
    gaps = samples(gateway, "penstock_load_gap_offsets", cluster="replaced")
    assert [(dict(labels)["cause"], value) for (_, labels), value in gaps.items()] == [("compacted", 2)]
    assert push(loaded(topic)) == []
    assert samples(gateway, "penstock_load_gap_offsets", cluster="replaced") == {}
    assert samples(gateway, "penstock_load_rows", cluster="replaced")
    assert groups(gateway) == key


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Path]:
    """The settings file of a broker with the topics `clicks` and `views`."""
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as server:
        file = tmp_path / "penstock.toml"
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{server.port}"\n')
        for topic in ("clicks", "views"):
            publish_by_settings(Settings.load(file), topic, numbered(20), cluster="main")
        yield file


def penstock(settings: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--settings", str(settings), *arguments])


def test_the_values_of_a_lake_arrive_until_their_topic_is_removed(gateway: Pushgateway, settings: Path) -> None:
    with settings.open("a") as file:
        file.write(f'[metrics]\npush_url = "{gateway.url}"\n')
    assert penstock(settings, "load", "clicks", "views").exit_code == 0
    for _ in range(2):
        assert penstock(settings, "metrics", "--push", gateway.url).stdout == ""
    lags = samples(gateway, "penstock_lag_offsets", cluster="main")
    assert {dict(labels)["topic"]: value for (_, labels), value in lags.items()} == {"clicks": 0, "views": 0}
    rows = samples(gateway, "penstock_load_rows", cluster="main")
    assert {dict(labels)["topic"]: value for (_, labels), value in rows.items()} == {"clicks": 20, "views": 20}
    assert len([key for key in groups(gateway) if ("cluster", "main") in key]) == 3

    with settings.open("a") as file:
        file.write('[topics]\ndeny = ["views"]\n')
    assert penstock(settings, "metrics", "--push", gateway.url).exit_code == 0
    assert samples(gateway, "penstock_lag_offsets", topic="views") == {}
    path = "/metrics/job/penstock_load/cluster/main/topic/"
    assert f"curl -X DELETE http://pushgateway:9091{path}clicks" in PAGE
    assert gateway.delete(f"{path}views") == 202
    assert samples(gateway, "penstock_", topic="views") == {}
    assert samples(gateway, "penstock_load_rows", topic="clicks")


def test_a_gateway_that_is_down_fails_no_load(settings: Path) -> None:
    with Pushgateway().start() as server:
        url = server.url
    with settings.open("a") as file:
        file.write(f'[metrics]\npush_url = "{url}"\n')
    loaded_without = penstock(settings, "load", "clicks", "views")
    assert loaded_without.exit_code == 0
    assert loaded_without.stderr.count("did not take the metrics: connection refused") == 1
