"""Fixtures for all tests: a ZooKeeper and a Spark session per process. Hooks that order and repeat tests."""

import atexit
import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from resources.machines.spark import open_session
from resources.machines.zookeeper_server import ZooKeeperServer
from tests import sampling, short_lived_jvm, spreading, thorough
from tests.nodes import empty_chroot
from tests.postgres_server import PostgresServer
from tests.unit_servers import UNIT_SERVERS, UnitServers

# Examples are slow on a shared machine, and in a fresh clone the first example also compiles kernels.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("shared"), max_examples=25)
settings.load_profile("shared")
short_lived_jvm.set_spark_options()

# A command that a shell starts in the background ignores SIGINT, and so do its children. Tests end commands with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs of other projects take part in these tests: Kafka, its clients, Spark, Dagster's servers, a browser. Such a
# program sometimes answers too late on a busy machine. Then the test runs again, and the summary shows both results.
# All other tests run once: a law of our own code that is broken only sometimes is broken.
_WITH_OTHER_PROGRAMS = (
    "tests/brokers/",
    "tests/kafka_io/consumer/group/test_mixed.py",
    "tests/kafka_io/testing/modern/clients/",
    "tests/spark/",
    "tests/ui/",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of samples."""
    sampling.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the sample that the options ask for."""
    config.pluginmanager.register(sampling.Sample.of(config), sampling.PLUGIN)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> spreading.UnitScheduling:
    """pytest-xdist calls this if tests run in several processes."""
    return spreading.schedule(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect all tests without the garbage collector: it would look at millions of objects that all stay.

    That halves the CPU time of the collection. Frozen objects are not looked at again while the tests run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 50)
        gc.enable()


@atexit.register
def hide_reports_of_leaks() -> None:
    """Discard what is printed from now on: DuckDB takes frozen objects for leaks when the interpreter ends.

    To free these millions of objects instead would take seconds of CPU time in each process.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Mark tests before pytest selects some of them by their marks, and sort those that it selected.

    A test with programs of other projects may fail once. Units of work that take long start first, and the tests of a
    unit run one after the other.
    """
    thorough.mark_repeated_releases(items)
    thorough.mark_moved(items)
    thorough.mark_long(items)
    thorough.mark_slow(items)
    if not any("::" in argument for argument in config.args) and (unknown := thorough.unknown_cases(items)):
        raise pytest.UsageError(f"these cases of STAYING in tests/thorough.py do not exist: {unknown}")
    for item in items:
        if item.nodeid.startswith(_WITH_OTHER_PROGRAMS):
            item.add_marker(pytest.mark.flaky(reruns=1))
    try:
        return (yield)
    finally:
        sample = sampling.sample_of(config)
        sample.choose(config, items)
        _sort(items, sample.rank_of)


def _sort(items: list[pytest.Item], rank_of: Callable[[str], tuple[int, int]]) -> None:
    units = {
        unit: number for number, unit in enumerate(dict.fromkeys(spreading.unit_of(item.nodeid) for item in items))
    }
    items.sort(key=lambda item: (rank_of(item.nodeid), units[spreading.unit_of(item.nodeid)]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """End the servers of a unit after its last test."""
    try:
        return (yield)
    finally:
        if nextitem is None or spreading.unit_of(nextitem.nodeid) != spreading.unit_of(item.nodeid):
            UNIT_SERVERS.end()


@pytest.fixture(scope="session")
def unit_servers() -> Iterator[UnitServers]:
    """The servers that only the tests of the current unit share."""
    yield UNIT_SERVERS
    UNIT_SERVERS.end()  # pytest can stop in the middle of a unit


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a ZooKeeper that all tests share."""
    with ZooKeeperServer(None, tmp_path_factory.mktemp("zookeeper")) as server:
        yield server.connect


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark session for all tests of this process: a process can have only one, and a JVM takes seconds."""
    session = open_session({"master": "local[2,2]", "spark.ui.enabled": "false"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A Postgres server that all tests of this process share."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The connection URI of an empty database that only this test uses."""
    with postgres_server.database() as dsn:
        yield dsn


@pytest.fixture
def chroot(zookeeper_server: str) -> str:
    """`host:port/chroot` of an empty node that only this test uses."""
    return empty_chroot(zookeeper_server)
