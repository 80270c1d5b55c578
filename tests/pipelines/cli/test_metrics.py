"""`penstock metrics` prints what `penstock status` knows, and a page for every problem of a topic or a cluster."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from pipelines.cli.main import main
from pipelines.status.metrics import STATUS_METRICS
from resources.explanations.explanation import ExitCode
from tests.brokers.ports import free_ports
from tests.pipelines.cli.broker_world import Make

DAY_MS = 86_400_000


def samples(text: str) -> dict[tuple[str, ...], float]:
    """The samples of a page, by name, topic and partition."""
    return {
        (sample.name, *(sample.labels[name] for name in ("topic", "partition") if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_metrics_are_the_facts_of_the_status(make: Make) -> None:
    world = make(retention_ms=DAY_MS)
    assert world.penstock("verify", "clicks").exit_code == ExitCode.NOT_PROVEN  # its commit has offsets without rows
    result = world.penstock("metrics", "--partitions")
    assert (result.exit_code, result.stderr) == (0, "")
    page = samples(result.stdout)
    assert {name for name, *_ in page} <= {name.name for name in STATUS_METRICS}
    for status in json.loads(world.penstock("status", "--json").stdout)["results"]:
        topic = status["topic"]
        assert (
            page["penstock_lag_offsets", topic] == page["penstock_partition_lag_offsets", topic, "0"] == status["lag"]
        )
        assert page["penstock_late_seconds", topic] == pytest.approx(status["late_s"], abs=60)
        assert page["penstock_table_rows", topic] == status["rows"]
        assert page["penstock_last_load_timestamp_seconds", topic] * 1000 == status["last_load"]["committed_ms"]
    assert page["penstock_until_loss_seconds", "views"] == pytest.approx(21.5 * 3600, abs=60)
    assert page["penstock_proof_success", "clicks"] == 0
    assert ("penstock_proof_success", "views") not in page


def test_a_broken_table_is_a_topic_that_is_down(make: Make, tmp_path: Path) -> None:
    world = make()
    max((tmp_path / "lake" / "main" / "clicks" / "_delta_log").glob("*.json")).write_text("{")
    result = world.penstock("metrics", "--textfile", str(tmp_path / "penstock.prom"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    page = samples((tmp_path / "penstock.prom").read_text())
    assert (page["penstock_topic_up", "clicks"], page["penstock_topic_up", "views"]) == (0, 1)


def test_a_cluster_that_does_not_answer_is_down_and_the_others_are_shown(make: Make) -> None:
    (port,) = free_ports(1)
    world = make(settings_text=f'[clusters.other]\nbootstrap = "127.0.0.1:{port}"\n')
    result = world.penstock("metrics", "--max-topics", "1")
    assert (result.exit_code, result.stderr.count("\n")) == (ExitCode.TRY_AGAIN, 3)
    assert "[cluster=other " in result.stderr
    assert f"cannot reach 127.0.0.1:{port} " in result.stderr
    assert 'penstock_up{cluster="other"} 0.0\n' in result.stdout
    assert 'penstock_topics_left_out{cluster="main"} 1.0\n' in result.stdout
    pushed = world.penstock("metrics", "--cluster", "main", "--push", f"http://127.0.0.1:{port}")
    assert (pushed.exit_code, pushed.stdout) == (ExitCode.TRY_AGAIN, "")
    assert pushed.stderr.startswith("penstock: MetricsNotWritten: the Pushgateway http://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--serve", "0", "--push", "http://127.0.0.1:1"), "give --serve, or --textfile and --push"),
        (("--push", "gateway"), "must be a URL such as"),
        (("--max-topics", "0"), "0 is not in the range"),
        (("--cluster", "none"), "there is no cluster 'none' in the settings"),
    ],
)
def test_wrong_use_is_explained(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    result = CliRunner().invoke(main, ["--settings", str(file), "metrics", *arguments])
    assert (result.exit_code, message in " ".join(result.stderr.split())) == (2, True), result.stderr
