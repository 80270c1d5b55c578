"""A real Prometheus scrapes `penstock metrics`, loads the rules for alerts, and accepts each query of the dashboard."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from resources.processes import end
from resources.settings import Settings
from tests.docs.pages import ROOT, run_blocks
from tests.live import numbered
from tests.monitoring.monitored import ALERTS, RULES, expressions
from tests.monitoring.prometheus_server import PrometheusServer, program
from tests.publishing import publish_by_settings

pytestmark = pytest.mark.prometheus
ALERT_TESTS = Path(__file__).parent / "alerts_test.yaml"


def promtool(*arguments: str, page: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *arguments], input=page, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Path]:
    """The settings file of a broker with one topic that was never loaded."""
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as server:
        file = tmp_path / "penstock.toml"
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{server.port}"\n')
        publish_by_settings(Settings.load(file), "clicks", numbered(20), cluster="main")
        yield file


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


def test_prometheus_scrapes_the_command_and_accepts_every_query(settings: Path) -> None:
    command = [sys.executable, "-m", "pipelines", "--settings", str(settings), "metrics", "--serve", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            target = process.stdout.readline().decode().split("//")[1].split("/")[0]
            with PrometheusServer(target, RULES).start() as server:
                [lag] = server.wait_for("penstock_lag_offsets")
                for query in expressions():
                    server.ask("query", query=query)
                rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
        finally:
            end(process)
        assert (process.returncode, process.communicate()[1]) == (0, b"")
    assert (lag["metric"]["cluster"], lag["metric"]["topic"], lag["value"][1]) == ("main", "clicks", "20")
    assert [rule["name"] for rule in rules] == ALERTS
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
