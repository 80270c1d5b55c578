"""A real Prometheus scrapes `penstock metrics` and a Pushgateway, loads the rules, and answers the queries."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_io.producer.opening import open_producer
from kafka_io.producer.publishing import publish_values
from kafka_io.producer.settings import ProducerSettings
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from resources.machines.processes import end
from resources.settings.settings import Settings
from tests.docs.pages import ROOT, run_blocks
from tests.live import numbered
from tests.monitoring.monitored import ALERTS, RULES, dashboard_queries, expressions
from tests.monitoring.prometheus_server import PrometheusServer, Pushgateway
from tests.monitoring.prometheus_server import promtool as promtool_path
from tests.publishing import publish_by_settings

pytestmark = pytest.mark.prometheus
ALERT_TESTS = Path(__file__).parent / "alerts_test.yaml"


def promtool(*arguments: str, page: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [promtool_path(), *arguments], input=page, capture_output=True, text=True, timeout=60, check=False
    )


SETTINGS = """\
lake = "lake"
[clusters.main]
bootstrap = "{broker}"
[metrics]
push_url = "{gateway}"
[topics.clicks]
format = "json"
max_bad_share = 1
event_time = "timestamp"
"""
DAY_MS = 86_400_000


@pytest.fixture
def gateway() -> Iterator[Pushgateway]:
    with Pushgateway().start() as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, gateway: Pushgateway) -> Iterator[Path]:
    """The settings file of a lake: `clicks` has a record that does not decode and a gap, `new` was never loaded."""
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", retention_ms=DAY_MS)
    with ModernBrokerServer(config) as server:
        broker, file = f"127.0.0.1:{server.port}", tmp_path / "penstock.toml"
        file.write_text(SETTINGS.format(broker=broker, gateway=gateway.url))
        transactions = ProducerSettings(transactional_id="tests")
        with open_producer(bootstrap=broker, settings=transactions) as producer, producer.transaction():
            publish_values((producer,), "clicks", [b'{"id": 1}', b"{"])
        penstock(file, "load", "clicks")
        penstock(file, "verify", "clicks")
        publish_by_settings(Settings.load(file), "new", numbered(20), cluster="main")
        yield file


def penstock(settings: Path, *arguments: str) -> None:
    result = CliRunner().invoke(main, ["--settings", str(settings), *arguments])
    assert result.exit_code == 0, result.output


def test_promtool_accepts_the_rules_and_their_alerts_are_as_expected(tmp_path: Path) -> None:
    checked = promtool("check", "rules", str(RULES))
    assert (checked.returncode, f"{len(ALERTS)} rules found" in checked.stdout) == (0, True), checked.stderr
    for file in (RULES, ALERT_TESTS):
        shutil.copy(file, tmp_path)
    tested = promtool("test", "rules", str(tmp_path / ALERT_TESTS.name))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_promtool_accepts_the_scrape_configuration(tmp_path: Path) -> None:
    [block] = run_blocks(ROOT / "docs" / "monitoring.md", "yaml")
    (tmp_path / "prometheus.yml").write_text(block.text)
    checked = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_query_of_the_dashboard_has_a_value_for_a_lake(settings: Path, gateway: Pushgateway) -> None:
    """The lake has everything that the dashboard shows, and the queries of the rules are accepted."""
    command = [sys.executable, "-m", "pipelines", "--settings", str(settings), "metrics", "--serve", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            target = process.stdout.readline().decode().split("//")[1].split("/")[0]
            with PrometheusServer(RULES, target, gateway.target).start() as server:
                lags = server.wait_for("penstock_lag_offsets")
                for query in dashboard_queries():
                    assert server.wait_for(query), query
                for query in expressions():
                    server.ask("query", query=query)
                rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
        finally:
            end(process)
        assert (process.returncode, process.communicate()[1]) == (0, b"")
    assert {lag["metric"]["topic"]: lag["value"][1] for lag in lags} == {"clicks": "0", "new": "20"}
    assert [rule["name"] for rule in rules] == ALERTS
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
