"""`make demo BROKER=...`: the demo runs on real brokers, with a part of its data."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from pipelines.demo import story
from pipelines.demo.data import rows_of
from pipelines.demo.servers import servers
from pipelines.demo.state import DemoState
from resources.settings.settings import PATH_VARIABLE
from tests.brokers import run
from tests.brokers.shared import SharedBroker
from tests.thorough import first

pytestmark = [pytest.mark.brokers]


@pytest.mark.spark
@pytest.mark.parametrize("version", first(1, ["4.1.0", "2.8.2", "0.8.2.2"]))
def test_the_demo_story_works_on_a_real_broker(
    version: str,
    shared: Callable[[str], SharedBroker],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shared_broker = shared(version)
    state = DemoState(home=tmp_path / "demo")
    state.begin(
        zookeeper=shared_broker.zookeeper, bootstrap=None if shared_broker.zookeeper else shared_broker.broker.bootstrap
    )
    assert not state.has_kafka
    monkeypatch.setenv(PATH_VARIABLE, str(state.settings))
    monkeypatch.setattr(story, "rows_of", lambda table: rows_of(table).slice(0, 2000))
    home = tmp_path / "dagster"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))  # the definitions are made from the topics in this instance
    overrides = {"telemetry": {"enabled": False}}
    with servers(state), dg.DagsterInstance.local_temp(str(home), overrides=overrides) as instance:
        assert story.run_story(state, instance)
    assert "3,795 published, 3,795 in the table" in capsys.readouterr().out


@pytest.mark.parametrize(("version", "option"), [("2.8.2", "--zookeeper"), ("3.9.1", "--bootstrap")])
def test_a_command_receives_the_address_of_the_broker(version: str, option: str) -> None:
    program = "import sys; print(*sys.argv[1:]); sys.exit(3)"
    command = [sys.executable, "-m", "tests.brokers.run", version, sys.executable, "-c", program, "--own"]
    completed = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=Path(run.__file__).parents[2]
    )
    assert completed.returncode == 3, completed.stderr
    assert re.fullmatch(rf"--own {option} 127\.0\.0\.1:\d+(/kafka)?\n", completed.stdout)


def test_an_unknown_version_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(SystemExit, match=r"one of 0\.8\.2\.2, .* 4\.1\.0"):
        run.main("0.7", "true")
