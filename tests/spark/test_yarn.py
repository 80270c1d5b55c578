"""Loads whose tasks run in containers of YARN: each row is in the table once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import short_lived_jvm
from tests.crash.avro_values import EARLIER
from tests.crash.harness import Trial
from tests.crash.stage import Stage
from tests.crash.worlds import MESSAGES
from tests.spark.daemons import HOME
from tests.spark.driver import Driver
from tests.spark.gate import Gate, gated
from tests.spark.sites import CLASSIC_DRIVER
from tests.spark.standalone import HOSTS
from tests.spark.test_loads import REQUEST_TIMEOUT_S
from tests.spark.ui import SparkUI, await_that
from tests.spark.yarn import QUEUE, Yarn, write_environment

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    with Stage("", tmp_path / "stage") as stage:
        yield stage.trial("modern", tmp_path / "trial")


@pytest.fixture
def gate() -> Iterator[Gate]:
    with gated() as gate:
        yield gate


@pytest.fixture
def yarn(tmp_path: Path) -> Iterator[Yarn]:
    with Yarn(tmp_path / "yarn") as yarn:
        yield yarn


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """Settings as on the page about Spark. Staging, jars and the archive are on the disk of this machine."""
    archive = tmp_path / "environment.tar.gz"
    write_environment(archive)
    return {
        "master": "yarn",
        "spark.yarn.dist.archives": f"{archive.as_uri()}#environment",
        "spark.yarn.jars": f"local:{HOME}/jars/*",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.executor.instances": str(len(HOSTS)),
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.executor.memoryOverhead": "512m",
        "spark.yarn.queue": QUEUE,
        "spark.yarn.stagingDir": (tmp_path / "staging").as_uri(),
        "spark.yarn.am.memory": "256m",
        "spark.yarn.am.extraJavaOptions": " ".join(short_lived_jvm.OPTIONS),
        **short_lived_jvm.EXECUTORS,
        **CLASSIC_DRIVER,
    }


def test_each_row_is_loaded_once_although_a_container_is_killed(
    settings: dict[str, str], yarn: Yarn, trial: Trial, gate: Gate
) -> None:  # fault S01
    with Driver(settings, {"HADOOP_CONF_DIR": str(yarn.configuration)}) as driver:
        ui = SparkUI(url=driver.ui)
        await_that(lambda: ui.executors() == len(HOSTS))
        gate.close()
        _, first = trial.new_driver_files(request_timeout_s=REQUEST_TIMEOUT_S, variant="truncated")
        driver.begin(first)
        gate.wait_for_fetches(len(HOSTS))
        yarn.kill(ui.containers()[0])
        gate.open()
        result = driver.end()
        assert (result.error, result.rows) == (None, EARLIER)
        trial.check()
        await_that(lambda: ui.executors() == len(HOSTS))  # YARN gives the application another container
        _, second = trial.new_driver_files(request_timeout_s=REQUEST_TIMEOUT_S)
        gate.close()
        driver.begin(second)
        await_that(lambda: ui.running() == len(HOSTS))  # the new container runs tasks too
        gate.open()
        result = driver.end()
        assert (result.error, result.rows) == (None, len(MESSAGES) - EARLIER)
        trial.check_complete()
        await_that(ui.is_at_rest)
        assert len(set(ui.containers())) == len(HOSTS) + 1
        assert ui.attempts()["FAILED"] > 0  # in the killed container
        assert yarn.application() == ("RUNNING", "UNDEFINED")
    await_that(lambda: yarn.application() == ("FINISHED", "SUCCEEDED"))
    await_that(lambda: yarn.working() == 0)
