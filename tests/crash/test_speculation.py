"""If two attempts of a Spark task both write a slice, the table has the rows of the slice once."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import short_lived_jvm
from tests.crash.harness import Trial
from tests.crash.spark_driver import SparkDriver
from tests.crash.stage import Stage
from tests.spark.daemons import ENVIRONMENT
from tests.spark.standalone import Standalone

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.zookeeper]
LONGEST_S = 120.0
SPARK = {
    **short_lived_jvm.EXECUTORS,
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.25",
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    with (
        Standalone(tmp_path_factory.mktemp("standalone")) as cluster,
        SparkDriver({"master": cluster.url, **SPARK}, ENVIRONMENT) as driver,
    ):
        yield driver


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def slices_with_two_files(trial: Trial) -> list[str]:
    """The slices with more than one data file. A file name has the slice, and then a part that differs by attempt."""
    files = Counter(Path(file).name.rpartition("-")[0] for file in trial.files())
    return [name for name, count in files.items() if count > 1]


def test_a_slice_that_two_attempts_write_is_committed_once(
    driver: SparkDriver, stage: Stage, tmp_path: Path
) -> None:  # fault S02
    trial = stage.trial("modern", tmp_path / "lake")
    home = driver.begin(trial, "stop:file synced")
    mark = home / "stop:file synced"
    wait_until(lambda: mark.exists() and mark.read_text())
    wait_until(lambda: slices_with_two_files(trial))
    os.kill(int(mark.read_text()), signal.SIGCONT)
    ended = driver.end(home)
    assert ended.code == 0, ended.output
    assert len(slices_with_two_files(trial)) == 1
    trial.check()
    trial.check_complete()
