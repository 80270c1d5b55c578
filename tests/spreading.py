"""Distributes tests over processes: tests that share servers run in one process, and long tests start first.

Tests of one file run in one process. There are exceptions: tests of real brokers run together with all tests of the
same version, tests of Spark clusters with all of the same cluster, and files that share servers together. The tests of
the simulation share nothing and can take a minute each, so any process runs any of them.

The units that need a local Spark session are two groups, and a process runs a whole group: those with real brokers, and
all others. Otherwise every process would have to start a session, which takes more than ten seconds of CPU time.
"""

import re
from typing import Any

from xdist.scheduler import LoadFileScheduling

from tests.brokers.releases import RELEASES

_BROKERS = "tests/brokers/"
_SPARK = "tests/spark/"
_SIMULATION = "tests/simulation/"
_VERSION = re.compile(rf"\[.*?((?:secure-)?(?:{'|'.join(map(re.escape, RELEASES))}))(?![\d.])")
_CLUSTER = re.compile(r"\[(?:.*-)?((?:classic|Connect), \w+)")
_PARTS = {_BROKERS: _VERSION, _SPARK: _CLUSTER}
_TOGETHER = {
    "tests/ui/test_many.py": "tests/ui/test_ui.py",
    "tests/test_names.py": "tests/test_docstrings.py",
    "tests/test_rooms.py": "tests/test_docstrings.py",
    "tests/test_source_laws.py": "tests/test_docstrings.py",
    "tests/resources/test_quantities.py": "tests/test_docstrings.py",
}
"""Files whose tests run together with those of another file: they share servers, or the syntax trees of all modules."""

SESSION = (
    "tests/crash/test_consumer_kills.py::test_a_killed_driver_of_spark_",
    "tests/docs/test_increments_page.py",
    "tests/docs/test_queries_page.py",
    "tests/fuzz/test_tables.py",
    "tests/pipelines/cli/test_main.py",
    "tests/pipelines/defs/runs/test_assets.py",
    "tests/pipelines/defs/test_increment_asset.py",
    "tests/pipelines/increments/test_spark_frames.py",
    "tests/pipelines/verify/test_day_readers.py",
    "tests/pipelines/load/test_golden.py",
    "tests/pipelines/load/test_load.py",
    "tests/pipelines/verify/test_other_readers.py",
    "tests/pipelines/rewrites/test_replay.py",
    "tests/resources/machines/test_spark.py",
)
"""Files and tests that use the Spark session of their process, except those of real brokers."""

# The units that take longest start first. Otherwise one process might still run a long unit when all others are done.
_LONGEST = (
    "tests/ui/test_kills.py",
    "tests/ui/",
    _BROKERS,
    *SESSION,
    _SPARK,
    "tests/crash/",
    "tests/docs/test_examples.py",
    "tests/pipelines/demo/",
    _SIMULATION,
    "tests/kafka_io/consumer/group/test_m",
    "tests/pipelines/defs/",
    "tests/pipelines/",
)


def unit_of(nodeid: str) -> str:
    """The unit of work that a test belongs to; one process runs all tests of a unit."""
    for folder, part in _PARTS.items():
        if nodeid.startswith(folder) and (match := part.search(nodeid)):
            return f"{folder} {match[1]}"
    file = nodeid.partition("::")[0]
    if file.startswith(_SIMULATION):
        return nodeid
    return _TOGETHER.get(file, file)


def group_of(nodeid: str) -> str:
    """The group of a test's unit; one process runs all units of a group, one after the other."""
    if nodeid.startswith(SESSION):
        return "a Spark session"
    unit = unit_of(nodeid)
    is_version = unit.startswith(f"{_BROKERS} ") and "secure" not in unit
    return "real brokers" if is_version else unit


def rank_of(nodeid: str) -> int:
    """The rank of a test's unit in the order: units with a low rank start first."""
    unit = unit_of(nodeid)
    return next((rank for rank, prefix in enumerate(_LONGEST) if unit.startswith(prefix)), len(_LONGEST))


class UnitScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Gives whole groups of units to the processes of pytest-xdist."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def schedule(config: Any, log: Any) -> UnitScheduling:
    """The scheduler that pytest-xdist asks for."""
    return UnitScheduling(config, log)
