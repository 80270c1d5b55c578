"""The options of a Spark session, and the timeout of a job that no executor runs; tested without Spark."""

import logging
import os
import sys
import time
import zipfile
from pathlib import Path

import pytest

from resources.errors import SparkFailed
from resources.machines import spark, spark_job


def test_a_connect_server_receives_only_options_of_a_session() -> None:
    options = spark._options({"remote": "sc://host:15002", "spark.sql.shuffle.partitions": "8"})
    assert options["spark.sql.shuffle.partitions"] == "8"
    assert all(key.startswith("spark.sql.") for key in options)


@pytest.mark.parametrize("place", [{}, {"master": "local[2]"}, {"remote": "local[2]"}])
def test_a_local_session_uses_only_loopback(place: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    environment = prepared_environment(place, monkeypatch)
    assert environment["SPARK_LOCAL_IP"] == spark._options(place)["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize("place", [{"master": "spark://host:7077"}, {"master": "yarn"}, {"remote": "sc://host:15002"}])
def test_the_driver_of_remote_executors_is_not_bound_to_loopback(
    place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "SPARK_LOCAL_IP" not in prepared_environment(place, monkeypatch)
    assert "spark.driver.host" not in spark._options(place)


@pytest.mark.parametrize("place", [{}, {"master": "spark://host:7077"}, {"master": "k8s://https://host:443"}])
def test_tasks_talk_to_java_through_unix_sockets_except_in_containers_of_yarn(place: dict[str, str]) -> None:
    """A container of YARN has its own temporary folder, whose path is longer than the address of a socket can be."""
    name = "spark.python.unix.domain.socket.enabled"
    assert spark._options(place)[name] == "true"
    assert name not in spark._options({"master": "yarn"})
    assert spark._options({"master": "yarn", name: "true"})[name] == "true"


def test_spark_logs_by_our_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of sessions give Spark the same rules in another way (see tests/short_lived_jvm.py)."""
    environment = prepared_environment({}, monkeypatch)
    assert (Path(environment["SPARK_CONF_DIR"]) / "log4j2.properties").exists()
    environment["SPARK_CONF_DIR"] = "/of/the/user"
    spark._prepare_environment({})
    assert environment["SPARK_CONF_DIR"] == "/of/the/user"


def test_executors_run_the_python_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = prepared_environment(
        {"master": "yarn", "spark.pyspark.python": "./environment/bin/python"}, monkeypatch
    )
    assert environment["PYSPARK_PYTHON"] == "./environment/bin/python"
    assert environment["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert prepared_environment({}, monkeypatch)["PYSPARK_PYTHON"] == sys.executable


def test_executors_do_not_receive_the_embedded_brokers() -> None:
    with zipfile.ZipFile(spark._shipped_code()) as archive:
        names = archive.namelist()
    assert "pipelines/fetch/fetch.py" in names
    assert "kafka_io/reader/source.py" in names
    assert not [name for name in names if name.startswith("kafka_io/testing/")]


def prepared_environment(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment variables that are set for Spark in an empty environment."""
    environment: dict[str, str] = {}
    monkeypatch.setattr(spark, "find_java", lambda: Path("java"))
    monkeypatch.setattr(os, "environ", environment)
    spark._prepare_environment(settings)
    return environment


def test_a_job_fails_when_no_task_runs_for_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monitor = spark_job._JobMonitor()
    monitor.check()  # no report yet
    monitor.update(0, 0, 4)
    now += 599
    monitor.check()
    monitor.update(1, 0, 4)
    now += 10_000
    monitor.check()  # a running task may take any time
    monitor.update(0, 1, 4)
    now += 599
    monitor.update(0, 1, 4)
    now += 2
    with pytest.raises(SparkFailed, match="no executor ran a task for 10 min"):
        monitor.check()
    reports: list[tuple[int, int]] = []
    monitor.report(lambda done, total: reports.append((done, total)))
    assert reports == [(1, 4)]
    monitor.begin_waiting()  # while other jobs had the cores, nobody waited for this one
    monitor.check()


def test_py4j_logs_no_stack_trace_of_an_interrupt(caplog: pytest.LogCaptureFixture) -> None:  # fault U11
    """If Ctrl-C interrupts a request to the JVM, py4j logs it with the root logger, and raises it too."""
    spark._silence_py4j()
    interrupt = KeyboardInterrupt()
    logging.error("KeyboardInterrupt while sending command.", exc_info=interrupt)  # noqa: LOG015 - as py4j does
    logging.getLogger("py4j.clientserver").error("an error that is raised too")
    logging.getLogger("penstock").error("an error of others")
    assert caplog.messages == ["an error of others"]


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, "-XX:TieredStopAtLevel=1"),
        ({"master": "local[2]"}, "-XX:TieredStopAtLevel=1"),
        ({"spark.driver.extraJavaOptions": "-Xss4m"}, "-XX:TieredStopAtLevel=1 -Xss4m"),
        ({"master": "spark://host:7077"}, None),
        ({"remote": "sc://host:15002"}, None),
    ],
)
def test_a_local_session_that_only_fetches_needs_no_optimizing_compiler(
    settings: dict[str, str], options: str | None
) -> None:
    fetching = spark.for_fetches(settings)
    assert fetching.get("spark.driver.extraJavaOptions") == options
    assert settings.items() - {("spark.driver.extraJavaOptions", "-Xss4m")} <= fetching.items()
