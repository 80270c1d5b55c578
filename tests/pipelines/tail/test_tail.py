"""`penstock tail` as scripts and people run it, on a live cluster of 0.7 and on one of later brokers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_io.records.build import Record, record_batch
from pipelines.cli.main import main
from tests.fakes.cluster import FakeCluster, Log
from tests.live import LiveCluster, numbered

Tail = Callable[..., Result]


def invoke(settings: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--settings", str(settings), "tail", *arguments])


def objects(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def log(values: list[bytes], *, leader: int = 0) -> Log:
    """Records in batches of one."""
    entries = [
        (offset, record_batch([Record(offset=offset, timestamp=offset, value=value)]))
        for offset, value in enumerate(values)
    ]
    return Log(entries=entries, end=len(entries), leader=leader)


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """Two partitions of three records."""
    with FakeCluster(logs={0: log([b"a", b"b", b"c"]), 1: log([b"x", b"y", b"z"], leader=1)}) as cluster:
        yield cluster


@pytest.fixture
def settings(fake: FakeCluster, tmp_path: Path) -> Path:
    file = tmp_path / "penstock.toml"
    address = ",".join(broker.address for broker in fake.bootstrap)
    file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{address}"\n[caps]\nattempts = 1\n')
    return file


def test_records_are_lines_of_json(settings: Path) -> None:
    records = objects(
        invoke(settings, "clicks", "--from", "earliest", "--until", "latest", "--partition", "1", "--json")
    )
    assert [record["value"] for record in records] == ["x", "y", "z"]
    assert records[1] == {
        "partition": 1,
        "offset": 1,
        "timestamp": "1970-01-01T00:00:00.001Z",
        "key": None,
        "value": "y",
        "headers": [],
    }


def test_the_default_output_has_fields_between_tabs(settings: Path) -> None:
    result = invoke(settings, "clicks", "--from", "1", "--partition", "0", "--max", "1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "0\t1\t1970-01-01T00:00:00.001Z\t-\tb\n", "")


def test_a_tail_begins_at_the_end_by_default(settings: Path) -> None:
    assert objects(invoke(settings, "clicks", "--until", "latest", "--json")) == []


def test_a_topic_without_a_table_has_no_committed_position(settings: Path) -> None:
    records = objects(invoke(settings, "clicks", "--from", "committed", "--until", "latest", "--json"))
    assert len(records) == 6


def test_a_damaged_batch_gives_exit_code_1_after_all_records_before_it(
    settings: Path, fake: FakeCluster
) -> None:  # fault R06
    offset, data = fake.logs[0].entries[2]
    fake.logs[0].entries[2] = (offset, data[:-1] + b"\xff")
    result = invoke(settings, "clicks", "--from", "earliest", "--partition", "0", "--json")
    *records, end = map(json.loads, result.stdout.splitlines())
    assert [record["value"] for record in records] == ["a", "b"]
    assert (end["command"], end["exit_code"]) == ("tail", result.exit_code) == ("tail", 1)
    assert "penstock: Corrupt: wrong CRC" in result.stderr
    assert "partition=0 offset=2]" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("clicks", "--from", "yesterday"), "'yesterday' is not a position in a log"),
        (("clicks", "--until", "earliest"), "'earliest' cannot be the end"),
        (("clicks", "--partition", "x"), "'x' is not a partition"),
        (
            ("clicks", "--from", "1"),
            "offset 1 is meaningful in one partition only; choose a partition of topic clicks: 0, 1",
        ),
        (("views",), "the cluster has no topic 'views'"),
        (("clicks", "--partition", "2"), "topic clicks has no partition 2; its partitions are: 0, 1"),
        (("clicks", "--max", "0"), "0 is not in the range x>=1"),
    ],
)
def test_wrong_arguments_give_exit_code_2(settings: Path, arguments: tuple[str, ...], message: str) -> None:
    result = invoke(settings, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("clicks", "--partition", "0", "--from", "4"), "offset 4 is outside the broker's log, which is [0, 3)"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_1(settings: Path, arguments: tuple[str, ...], message: str) -> None:
    result = invoke(settings, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def start(settings: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "pipelines", "--settings", str(settings), "tail", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})


@pytest.mark.slow
def test_ctrl_c_ends_the_command_without_output(settings: Path) -> None:
    with start(settings, "clicks", "--from", "earliest", "--partition", "0") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        remaining, message = process.communicate(timeout=30)
    assert [line.split("\t")[-1] for line in lines] == ["a\n", "b\n", "c\n"]
    assert (process.returncode, remaining, message) == (0, "", "")


@pytest.mark.slow
def test_a_closed_pipe_ends_the_command_without_output(fake: FakeCluster, settings: Path) -> None:
    fake.logs[0] = log([b"value" * 200] * 2000)
    with start(settings, "clicks", "--from", "earliest", "--until", "latest") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_a_tail_needs_neither_spark_nor_delta(settings: Path) -> None:
    script = (
        "import sys; from pipelines.cli.main import main; main(sys.argv[1:], standalone_mode=False); "
        "sys.exit(str({'pyspark', 'deltalake', 'dagster', 'duckdb'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", script, "--settings", str(settings), "tail", "clicks", "--until", "latest"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert completed.stderr == "set()\n"


@pytest.mark.zookeeper
def test_messages_of_0_7_come_from_all_brokers_and_codecs(live: LiveCluster) -> None:
    messages = numbered(200)
    live.publish("clicks", messages)
    records = objects(invoke(live.settings, "clicks", "--from", "earliest", "--until", "latest", "--json"))
    assert sorted(record["value"].encode() for record in records) == sorted(messages)
    assert {(record["broker"], record["partition"]) for record in records} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    places = [(record["broker"], record["partition"], record["offset"], record["inner"]) for record in records]
    assert len(set(places)) == 200
    only = objects(invoke(live.settings, "clicks", "--from", "0", "--until", "latest", "--partition", "1-0", "--json"))
    assert [record["value"] for record in only] == [
        record["value"] for record in records if (record["broker"], record["partition"]) == (1, 0)
    ]


@pytest.mark.zookeeper
def test_a_time_of_0_7_never_skips_a_message(live: LiveCluster) -> None:
    live.publish("clicks", numbered(50))
    now = datetime.now(UTC)
    arguments = ("clicks", "--until", "latest", "--json", "--from")
    assert len(objects(invoke(live.settings, *arguments, "-1h"))) == 50
    assert objects(invoke(live.settings, *arguments, (now + timedelta(hours=1)).isoformat())) == []


@pytest.mark.zookeeper
def test_messages_that_come_later_are_followed(live: LiveCluster) -> None:
    live.publish("clicks", [b"before"])
    with start(live.settings, "clicks", "--from", "earliest", "--json", "--max", "4") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        live.publish("clicks", [b"one", b"two", b"three"], codecs=("gzip",))
        remaining, trouble = process.communicate(timeout=60)
    values = [json.loads(line)["value"] for line in (first, *remaining.splitlines())]
    assert values == ["before", "one", "two", "three"]
    assert (process.returncode, trouble) == (0, "")


def test_the_command_has_help() -> None:
    result = CliRunner().invoke(main, ["tail", "--help"])
    assert result.exit_code == 0
    assert "penstock tail clicks --from -15m --until latest --json" in result.stdout
