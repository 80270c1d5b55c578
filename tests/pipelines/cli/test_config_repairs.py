"""`penstock config check` finds what is wrong outside the settings file, and says how to repair it."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from kafka_io.errors import LocatedError
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.records.build import Record, record_batch
from pipelines.cli.config_tests import machine as check_machine
from pipelines.cli.config_tests import result as check_result
from pipelines.cli.main import main
from resources.explanations.texts import explanations
from resources.extras import check_extra
from resources.machines.java import JavaNotFound
from tests.fakes.cluster import CLOSE, EVERYTHING, FakeCluster, Log

READ, DESCRIBE, DESCRIBE_CONFIGS = (1 << code for code in (3, 8, 10))
NOW_MS = int(time.time() * 1000)
Check = Callable[[], dict[str, dict[str, Any]]]


class DiskUsage(NamedTuple):
    """What `shutil.disk_usage` returns."""

    total: int
    used: int
    free: int


@pytest.fixture
def log() -> Log:
    """The one partition of the cluster; it has a record of a day ago."""
    return Log(entries=[(0, record_batch([Record(offset=0, timestamp=NOW_MS - 86_400_000, value=b"x")]))], end=1)


@pytest.fixture
def fake(log: Log) -> Iterator[FakeCluster]:
    with FakeCluster(logs={0: log}, offered={**EVERYTHING, 0: (0, 11)}) as cluster:
        yield cluster


@pytest.fixture
def check(fake: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs the check for settings of the cluster with a lake that exists; returns the results by subject."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    (tmp_path / "lake").mkdir()
    file = tmp_path / "penstock.toml"
    file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{fake.bootstrap[0].address}"\n')

    def run() -> dict[str, dict[str, Any]]:
        output = CliRunner().invoke(main, ["--settings", str(file), "config", "check", "--json"]).stdout
        return {result["check"]: result for result in json.loads(output)["results"]}

    return run


def failure(results: dict[str, dict[str, Any]]) -> tuple[str, str, str, str]:
    """The subject, kind, message and repair of the only problem."""
    (problem,) = (result for result in results.values() if not result["ok"])
    (error,) = problem["errors"]
    assert problem["repair"] == explanations()[error["code"]].check_repair
    return problem["check"], error["kind"], problem["message"], problem["repair"]


def test_a_machine_and_a_cluster_without_problems_need_no_repair(check: Check) -> None:
    results = check()
    assert {result["repair"] for result in results.values()} == {None}
    assert results["brokers main"]["message"] == "all 2 answer, release 3.9"
    assert results["clock main"]["message"] == "no record is in the future"
    assert results["clock of the lake"]["message"] == "agrees with that of this machine"
    assert results["dagster storage"]["message"] == "not tested: DAGSTER_HOME is not set here"
    assert results["rights main"]["message"].startswith("not reported by the brokers")
    assert {"disk of the lake", "disk of temporary files"} <= results.keys()


def test_each_problem_has_a_line_with_its_repair(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "none"))
    lines = CliRunner().invoke(main, ["--settings", str(tmp_path / "penstock.toml"), "config", "check"]).stdout
    problem = lines.splitlines().index(f"failed dagster storage: {_no_folder(tmp_path)}")
    assert lines.splitlines()[problem + 1] == f"       {explanations()['PS-707'].check_repair}"


def _no_folder(tmp_path: Path) -> str:
    return f"StorageUnusable: DAGSTER_HOME is {tmp_path / 'none'}, which is no folder (PS-707)"


def test_a_broker_that_does_not_answer_is_found_although_others_answer(check: Check, fake: FakeCluster) -> None:
    fake.brokers[1].handlers = dict.fromkeys(fake.brokers[1].handlers, lambda _: CLOSE)
    subject, kind, message, _ = failure(check())
    assert (subject, kind) == ("brokers main", "BrokerRefused")
    assert message.startswith("BrokerRefused: 1 of 2 brokers do not answer: ")
    assert f"broker=1@{fake.bootstrap[1].address}" in message


@pytest.mark.parametrize(
    ("allowed", "problem"),
    [
        (READ | DESCRIBE | DESCRIBE_CONFIGS, None),
        (DESCRIBE | DESCRIBE_CONFIGS, "the client may not READ 1 of the topics, such as clicks; "),
        (READ | DESCRIBE, "the client may not DESCRIBE_CONFIGS 1 of the topics, such as clicks; "),
    ],
)
def test_rights_that_a_load_needs_are_tested(
    check: Check, fake: FakeCluster, allowed: int, problem: str | None
) -> None:
    def with_rights(request: Any) -> Any:
        answer = fake.metadata(request)
        reported = allowed if request.request.include_topic_authorized_operations else -(2**31)
        return replace(answer, topics=tuple(replace(t, topic_authorized_operations=reported) for t in answer.topics))

    for broker in fake.brokers:
        broker.handlers[MetadataRequest.API.key] = with_rights
    results = check()
    if problem is None:
        assert results["rights main"]["message"].startswith("READ and DESCRIBE_CONFIGS are allowed, topics: 1; ")
    else:
        subject, kind, message, _ = failure(results)
        assert (subject, kind) == ("rights main", "RightsMissing")
        assert message.startswith(f"RightsMissing: {problem}`kafka-acls.sh ")


def test_a_record_in_the_future_shows_a_wrong_clock(check: Check, log: Log) -> None:
    log.entries = [(0, record_batch([Record(offset=0, timestamp=int(time.time() * 1000) + 7_230_000, value=b"x")]))]
    subject, kind, message, _ = failure(check())
    assert (subject, kind) == ("clock main", "ClockWrong")
    assert message.startswith("ClockWrong: the newest record is 2 h in the future: ")
    assert message.endswith("[cluster=main topic=clicks] (PS-706)")


@pytest.mark.parametrize(("ahead_s", "direction"), [(7230, "ahead of"), (-7230, "behind")])
def test_a_store_with_another_time_is_found(
    check: Check, monkeypatch: pytest.MonkeyPatch, ahead_s: int, direction: str
) -> None:
    monkeypatch.setattr(check_machine, "time", FixedClock(time.time() - ahead_s))
    subject, kind, message, _ = failure(check())
    assert (subject, kind) == ("clock of the lake", "ClockWrong")
    assert message.endswith(f"the store is 2 h {direction} that of this machine (PS-706)")


class FixedClock:
    """Replaces the module `time` in a module that only asks for the time."""

    def __init__(self, now_s: float) -> None:
        self._now_s = now_s

    def time(self) -> float:
        """The same time at each call."""
        return self._now_s


def test_a_check_leaves_no_file_in_the_lake(check: Check, tmp_path: Path) -> None:
    check()
    assert list((tmp_path / "lake").iterdir()) == []


@pytest.mark.slow
def test_a_disk_that_is_almost_full_is_found(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gib, real = 1024**3, shutil.disk_usage

    def usage(path: Path) -> Any:
        full = path == tmp_path / "lake"
        return DiskUsage(total=100 * gib, used=99 * gib, free=gib) if full else real(path)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    subject, kind, message, _ = failure(check())
    assert (subject, kind) == ("disk of the lake", "SpaceShort")
    assert message == f"SpaceShort: the disk is almost full: 1.1 GB of 107 GB are free in {tmp_path}/lake (PS-705)"


@pytest.mark.slow
def test_the_storage_of_dagster_is_tested(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert failure(check()) == (
        "dagster storage",
        "StorageUnusable",
        _no_folder(tmp_path).replace("none", "dagster"),
        explanations()["PS-707"].check_repair,
    )
    home.mkdir()
    (home / "dagster.yaml").write_text("concurrency: {pools: {default_limit: 2}}\n")
    assert check()["dagster storage"]["message"] == "SqliteRunStorage, runs: 0, limit of pools: 2"
    (home / "dagster.yaml").write_text("storage: {sqlite: {base_dir: 1}}\n")
    subject, kind, message, _ = failure(check())
    assert (subject, kind) == ("dagster storage", "StorageUnusable")
    assert message == f"StorageUnusable: Dagster cannot use the storage that {home}/dagster.yaml names (PS-707)"


def test_settings_that_need_an_extra_say_so(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.extras.find_spec", lambda module: None if module in {"pyspark", "dagster"} else 1)
    results = check()
    assert results["spark"]["message"].endswith("install it with `pip install 'penstock-etl[spark]'`")
    assert results["dagster"]["message"].endswith("install it with `pip install 'penstock-etl[dagster]'`")
    assert results["java"]["message"] == "not needed without Spark"
    settings = tmp_path / "penstock.toml"
    settings.write_text(settings.read_text() + '[spark]\nmaster = "local[2]"\n')
    assert failure(check())[:2] == ("spark", "ExtraMissing")
    with pytest.raises(LocatedError, match="a state table needs the package pyspark"):
        check_extra("spark", "a state table")


@pytest.mark.parametrize(
    ("error", "repair"),
    [
        (
            JavaNotFound("no Java"),
            "Install Java 17 or later, or the extra `spark`, and correct JAVA_HOME if it is set.",
        ),
        (IsADirectoryError("ca"), "Correct the path in the settings: it must be a file."),
        (NotADirectoryError("ca"), "Run `penstock --debug config check`: it shows the details."),
        (KeyError("ca"), "Run `penstock --debug config check`: it shows the details."),
    ],
)
def test_an_error_has_the_repair_of_its_code(error: Exception, repair: str) -> None:
    assert check_result.failed("subject", error).repair == repair
