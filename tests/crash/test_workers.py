"""If Spark workers end in the middle of a load, Spark runs their slices again, and the load succeeds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.spark_driver import SparkDriver
from tests.crash.stage import WORLDS, Stage
from tests.thorough import first

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.zookeeper]
STEPS = ("fetch began", "batch fetched", "file opened", "file written", "file closed", "file synced", "facts sent")
# One task may reach all of these, each in a new worker, so Spark needs one attempt more than there are failpoints.
SPARK = {"master": f"local[2,{len(STEPS) + 1}]", "spark.ui.enabled": "false"}


@pytest.fixture(scope="module")
def driver() -> Iterator[SparkDriver]:
    with SparkDriver(SPARK) as driver:
        yield driver


@pytest.mark.parametrize("world", first(1, reversed(WORLDS)))
def test_a_load_survives_workers_that_are_killed_at_each_failpoint(
    world: str, driver: SparkDriver, stage: Stage, tmp_path: Path
) -> None:  # fault S01
    trial = stage.trial(world, tmp_path / "lake")
    ended = driver.load(trial, *STEPS)
    assert (ended.code, set(ended.reached)) == (0, set(STEPS)), ended.output
    trial.check_complete()


def test_a_load_survives_workers_that_exit_by_themselves(
    driver: SparkDriver, stage: Stage, tmp_path: Path
) -> None:  # fault S08
    trial = stage.trial("modern", tmp_path / "lake")
    ended = driver.load(trial, "exit:batch fetched", "fault:file opened", "raise:fetch began")
    assert (ended.code, len(ended.reached)) == (0, 3), ended.output
    trial.check_complete()
