"""A load killed with SIGKILL at every named step, then run again, gives the same table as an undisturbed one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipelines.loading.steps import KILL_AT, STEPS
from tests.live import LiveCluster, live_cluster, numbered

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.zookeeper]

MESSAGES = numbered(2000)
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def live(zookeeper_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """One topic that all tests of this file read; each loads it into a lake of its own."""
    with live_cluster(zookeeper_server, tmp_path_factory.mktemp("live")) as cluster:
        cluster.publish("clicks", MESSAGES)
        yield cluster


@pytest.fixture(scope="module")
def undisturbed(live: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    home = tmp_path_factory.mktemp("undisturbed")
    assert run(live, home).returncode == 0
    return rows(home)


def run(live: LiveCluster, home: Path, *, kill_at: str | None = None) -> subprocess.CompletedProcess[str]:
    """`penstock load` in a process of its own."""
    settings = home / "penstock.toml"
    settings.write_text(live.settings.read_text())
    environment = {**os.environ, **({KILL_AT: kill_at} if kill_at else {})}
    command = [sys.executable, "-m", "pipelines", "--settings", str(settings), "load", "clicks", "--json"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def rows(home: Path) -> Rows:
    table = DeltaTable(home / "lake" / "main" / "clicks").to_pyarrow_table()
    columns = ("broker", "partition", "offset", "inner", "value", "topic")
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


@pytest.mark.parametrize("step", STEPS)
def test_a_load_killed_at(
    step: str, live: LiveCluster, undisturbed: Rows, tmp_path: Path
) -> None:  # L01, L02, S01, S04
    killed = run(live, tmp_path, kill_at=step)
    assert killed.returncode != 0
    again = run(live, tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)[0]["error"] is None
    assert rows(tmp_path) == undisturbed
    proof = subprocess.run(
        [sys.executable, "-m", "pipelines", "--settings", str(tmp_path / "penstock.toml"), "verify", "--all", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert proof.returncode == 0, proof.stdout
    assert sum(one["rows"] for one in json.loads(proof.stdout)[0]["partitions"]) == len(MESSAGES)
