"""The `penstock` command has what scripts rely on: exit codes, JSON, one sentence per error."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from kafka_io.brokers.negotiation import Connector
from kafka_io.model import Broker, Generation
from kafka_io.zookeeper.zookeeper import ZooKeeper
from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from tests.live import LiveCluster, numbered

Penstock = Callable[..., Result]


@pytest.fixture
def penstock(live: LiveCluster) -> Penstock:
    """Run a command on the live cluster's settings."""

    def run(*arguments: str, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(main, ["--settings", str(live.settings), *arguments], input=stdin)

    return run


def answer(result: Result) -> Any:
    return json.loads(result.stdout)["results"]


@pytest.mark.zookeeper
@pytest.mark.spark
def test_publish_load_and_verify_as_scripts_do(
    penstock: Penstock, live: LiveCluster, spark: SparkSession, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_bytes(b"\n".join(numbered(100)) + b"\n")
    published = penstock("publish", "clicks", str(lines), "--codec", "gzip", "--batch", "10")
    assert (published.exit_code, published.stdout) == (0, "100 messages published to clicks\n")
    live.publish("views", [b"x"])

    (clicks, views) = answer(penstock("topics", "--json"))
    assert (clicks["cluster"], clicks["topic"], views["topic"]) == ("main", "clicks", "views")
    assert clicks["table"] == str(live.lake / "main" / "clicks")
    assert clicks["incarnation"].isdigit()
    assert [(part["broker"], part["partition"]) for part in clicks["partitions"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(part["earliest"] == 0 and part["cursor"] is None for part in clicks["partitions"])
    assert all(part["lag"] == part["latest"] > 0 for part in clicks["partitions"])

    loaded = penstock("load", "clicks", "--json")
    assert loaded.exit_code == 0, loaded.output
    (load,) = answer(loaded)
    assert (load["topic"], load["version"], load["rows"], load["errors"]) == ("clicks", 1, 100, [])
    assert load["files"] == 4
    assert load["bytes"] == sum(part["end"] - part["start"] for part in load["partitions"])
    assert all(part.keys() >= {"broker", "partition", "start", "end", "rows", "gaps"} for part in load["partitions"])

    second_load = penstock("load", "--all", "--json")
    assert [(load["topic"], load["rows"]) for load in answer(second_load)] == [("clicks", 0), ("views", 1)]
    (clicks, _) = answer(penstock("topics", "--json"))
    assert all(part["cursor"] == part["latest"] and part["lag"] == 0 for part in clicks["partitions"])

    proven = penstock("verify", "--all", "--json")
    assert proven.exit_code == 0
    assert [(proof["topic"], proof["proven"], proof["problems"]) for proof in answer(proven)] == [
        ("clicks", True, []),
        ("views", True, []),
    ]
    names = {"incarnation", "broker", "partition", "start", "end", "rows", "gaps", "missing", "duplicates"}
    assert all(part.keys() == names for proof in answer(proven) for part in proof["partitions"])

    file = next((live.lake / "main" / "clicks").glob("date=*/*.parquet"))
    file.unlink()
    broken = penstock("verify", "clicks", "--json")
    assert broken.exit_code == ExitCode.NOT_PROVEN
    (proof,) = answer(broken)
    assert not proof["proven"]
    broker_partition = file.name.split("-")[:2]
    assert f"it held partition {'-'.join(broker_partition)} [0, " in proof["problems"][0]


@pytest.mark.zookeeper
@pytest.mark.spark
def test_people_get_tables_and_sentences(penstock: Penstock, live: LiveCluster, spark: SparkSession) -> None:
    assert "no topics" in penstock("topics").stdout
    assert penstock("publish", "clicks", "-", stdin=b"a\r\nb").exit_code == 0
    assert "clicks" in penstock("topics").stdout
    loaded = penstock("load", "clicks")
    assert loaded.exit_code == 0
    assert "VERSION" in loaded.stdout
    assert "proven clicks: 2 rows, each exactly once" in penstock("verify", "clicks").stdout
    live.settings.write_text(live.settings.read_text().replace("[spark]", '[topics]\ndeny = "clicks"\n[spark]'))
    assert "no topics" in penstock("topics").stdout
    assert answer(penstock("load", "--all", "--json")) == []


@pytest.mark.zookeeper
def test_a_load_of_an_unknown_topic_is_wrong_use(penstock: Penstock, live: LiveCluster) -> None:
    live.publish("clicks", [b"x"])
    result = penstock("load", "views")
    assert result.exit_code == 2
    assert "the cluster main has no topic 'views'" in result.stderr


@pytest.mark.zookeeper
@pytest.mark.spark
def test_a_spark_that_does_not_start_is_one_sentence(live: LiveCluster) -> None:
    live.publish("clicks", numbered(1000))
    live.settings.write_text(live.settings.read_text().replace("local[2,2]", "nonsense"))
    command = [sys.executable, "-m", "pipelines", "--settings", str(live.settings), "load", "clicks"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert completed.returncode == ExitCode.TRY_AGAIN
    assert (
        "SparkFailed: Spark does not start with the address nonsense; check [spark] in the settings" in completed.stderr
    )
    assert "Traceback" not in completed.stderr


def settings(tmp_path: Path, text: str) -> str:
    file = tmp_path / "penstock.toml"
    file.write_text(text)
    return str(file)


ONE = 'lake = "lake"\n[clusters.main]\nzookeeper = "127.0.0.1:1"\n'
TWO = ONE + '[clusters.other]\nzookeeper = "127.0.0.1:1"\n'


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (ONE, ("load",), "give topics, or --all"),
        (ONE, ("load", "a", "--all"), "not both"),
        (ONE, ("load", "a", "--cluster", "none"), "there is no cluster 'none' in the settings; the clusters are: main"),
        (TWO, ("load", "a"), "choose a cluster with --cluster: main, other"),
        (TWO, ("publish", "a", "-"), "choose a cluster with --cluster: main, other"),
        (ONE, ("publish", "a", "/no/such/file"), "No such file"),
        (ONE, ("broker", "--broker-id", "0"), "Missing option"),
        (ONE, ("nonsense",), "No such command"),
        (ONE, ("load", "a", "--from", "soon"), "'soon' is not a position in a log"),
        (ONE, ("load", "a", "--from", "7"), "an offset belongs to a single partition"),
        (ONE, ("load", "a", "--from", "-1h", "--to", "-2h"), "nothing is between -1h and -2h"),
        ("lake = 1", ("topics",), "lake must be a text"),
        (ONE.replace("zookeeper", "generation"), ("topics",), "clusters.main.generation"),
    ],
)
def test_wrong_use_is_exit_code_2(tmp_path: Path, text: str, arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(main, ["--settings", settings(tmp_path, text), *arguments])
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr


def test_a_missing_settings_file_is_exit_code_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--settings", str(tmp_path / "none.toml"), "topics"])
    assert result.exit_code == 2
    assert "there is no settings file" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("generation", "spoken"), [("modern", Generation.MODERN), ("0.8-0.9", Generation.V08)])
def test_an_embedded_broker_speaks_the_chosen_generation(generation: str, spoken: Generation, tmp_path: Path) -> None:
    options = ("--broker-id", "3", "--port", "0", "--data-dir", str(tmp_path), "--generation", generation)
    with subprocess.Popen(
        [sys.executable, "-m", "pipelines", "broker", *options], stdout=subprocess.PIPE, text=True
    ) as broker:
        try:
            assert broker.stdout is not None
            port = int(broker.stdout.readline().rpartition(":")[2])
            negotiated = Connector(timeout_s=20.0, max_answer_bytes=1_000_000).connect(Broker(3, "127.0.0.1", port))
            negotiated.connection.close()
            assert negotiated.generation is spoken
        finally:
            broker.send_signal(signal.SIGTERM)
    assert broker.returncode == 0


@pytest.mark.zookeeper
def test_the_embedded_servers_run_in_the_foreground_and_end_on_sigterm(tmp_path: Path, chroot: str) -> None:
    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pipelines", *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ}
        )

    zookeeper = start("zookeeper", "--port", "0", "--data-dir", str(tmp_path / "zookeeper"))
    place = ("--data-dir", str(tmp_path / "broker"), "--zookeeper", chroot)
    broker = start("broker", "--broker-id", "3", "--port", "0", "--partitions", "2", *place)
    try:
        for process, ready in (
            (zookeeper, "ZooKeeper is ready on 127.0.0.1:"),
            (broker, "broker 3 ready on 127.0.0.1:"),
        ):
            assert process.stdout is not None
            assert ready in process.stdout.readline()
        with ZooKeeper.open(chroot) as client:
            assert [broker_entry.id for broker_entry in client.brokers().entries] == [3]
    finally:
        for process in (broker, zookeeper):
            process.send_signal(signal.SIGTERM)
    assert [process.wait(30) for process in (broker, zookeeper)] == [0, 0]
    for process in (broker, zookeeper):
        assert process.stdout is not None
        process.stdout.close()
    with ZooKeeper.open(chroot) as client:
        assert client.brokers().entries == ()
