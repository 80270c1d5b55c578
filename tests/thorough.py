"""Chooses the test cases that `make test` leaves to `make thorough`: they repeat a law that another case tests.

Such a case has another seed, another version of Kafka's brokers, or another pair of parameters. Each law keeps at least
one case in `make test`. What takes minutes of CPU time is left out as a whole, if a cheaper test breaks with the same
law: MOVED tells what, why, and which tests stay.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.spreading import unit_of

_REPEATED_RELEASES = ("0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.1")
"""What brokers of these versions speak, the version before or after them speaks too, except for some APIs. The messages
of 0.10 are also in a log of 2.8.2, which test_loads.py loads."""
_BROKERS = "tests/brokers/"
_LEADER_KILLED = (
    "tests/brokers/test_matrix_leaders.py::test_a_leader_killed_during_a_read_causes_no_gap_and_no_duplicate"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Tests that take too long for `make test`, whose laws other tests keep there.

    Args:
        tests: how the node ids of the tests begin.
        why: what they do beyond the tests that stay.
        staying: how the node ids of tests of `make test` begin that break if the same law breaks.
    """

    tests: str
    why: str
    staying: tuple[str, ...]


MOVED = (
    Moved(
        tests="tests/ui/test_kills.py",
        why="Real daemons, webservers, code servers and runs are killed one after the other: a chain of ten minutes, "
        "which mostly waits for Dagster's own timers.",
        staying=(
            "tests/pipelines/defs/runs/test_run_liveness.py::test_a_run_whose_process_is_gone_is_marked_as_failed",
            "tests/pipelines/defs/sensors/test_new_topics.py::test_a_repeated_tick_uses_the_same_run_key",
            "tests/pipelines/defs/sensors/test_schedules.py::test_a_topic_of_an_unfinished_run_is_not_requested_again",
            "tests/pipelines/defs/runs/test_assets.py::test_a_run_that_is_terminated_ends_its_work_and_is_not_retried",
            "tests/pipelines/defs/test_jobs.py::test_loads_and_watches_have_pools_of_their_own",
            "tests/pipelines/defs/sensors/test_reload.py",
            "tests/crash/test_kill.py",
        ),
    ),
    Moved(
        tests="tests/ui/test_thousand.py",
        why="Dagster's pages with a thousand topics: its webserver and Chromium compute for a minute.",
        staying=("tests/pipelines/defs/test_scale.py", "tests/ui/test_new_topics.py"),
    ),
    Moved(
        tests="tests/ui/test_many.py",
        why="Three runs load twelve topics, and Chromium draws large pages.",
        staying=("tests/pipelines/defs/test_scale.py", "tests/ui/test_new_topics.py"),
    ),
    Moved(
        tests="tests/ui/test_ui.py",
        why="Chromium needs ten seconds of CPU time for each of Dagster's pages, after a load with Spark.",
        staying=(
            "tests/ui/test_new_topics.py",
            "tests/pipelines/defs/catalog/test_metadata.py",
            "tests/pipelines/defs/catalog/test_checks.py",
            "tests/pipelines/defs/runs/test_check_runs.py",
            "tests/pipelines/defs/sensors/test_schedules.py",
        ),
    ),
    Moved(
        tests="tests/pipelines/demo/test_demo.py::test_the_demo_loads_and_verifies_everything",
        why="The whole demo with all of its data, in processes of its own.",
        staying=(
            "tests/brokers/test_demo.py::test_the_demo_story_works_on_a_real_broker[4.1.0]",
            "tests/pipelines/demo/test_departures.py",
            "tests/pipelines/demo/test_reported_hours.py",
        ),
    ),
    Moved(
        tests="tests/brokers/test_upgrade.py",
        why="A topic lives through upgrades of its brokers: four versions start, stop and start again.",
        staying=(
            "tests/brokers/test_matrix_leaders.py::test_a_cluster_during_a_rolling_upgrade",
            "tests/brokers/test_loads.py::test_a_partition_in_three_message_formats_is_loaded_completely",
        ),
    ),
    Moved(
        tests="tests/brokers/test_connector.py",
        why="Four console consumers of Kafka join, leave and are killed, and their broker restarts.",
        staying=(
            "tests/kafka_io/consumer/connector/test_connector.py::test_partitions_move_to_a_member_that_joins",
            "tests/kafka_io/consumer/connector/test_losses.py::test_the_partitions_of_a_killed_member_move",
        ),
    ),
    Moved(
        tests="tests/brokers/test_restored_disk.py",
        why="A broker of 3.9.1 loads, stops, gets its old disk back and starts again, twice.",
        staying=("tests/simulation/test_world.py", "tests/pipelines/identity/test_restored_log.py"),
    ),
    Moved(
        tests="tests/brokers/test_demo.py::test_a_command_receives_the_address_of_the_broker",
        why="It starts a broker of each kind for one line of output.",
        staying=("tests/brokers/test_demo.py::test_the_demo_story_works_on_a_real_broker",),
    ),
    Moved(
        tests="tests/spark/test_loads.py::test_a_load_ends_with_an_error_when_all_hosts_are_dead",
        why="It waits until Spark gives up.",
        staying=("tests/spark/test_loads.py::test_a_load_is_complete_although_a_host_is_killed",),
    ),
    Moved(
        tests="tests/pipelines/load/test_connect.py",
        why="It starts a server of Spark Connect for itself.",
        staying=("tests/spark/test_loads.py::test_the_same_load_runs_at_every_site",),
    ),
    Moved(
        tests="tests/brokers/test_canary.py",
        why="All kinds of loads in Spark and in Dagster, whose output is searched for secrets: a minute of CPU time.",
        staying=(
            "tests/kafka_io/net/test_secret.py",
            "tests/pipelines/defs/test_store_secrets.py",
            "tests/brokers/test_security.py::test_a_wrong_secret_is_an_authentication_error",
        ),
    ),
    Moved(
        tests="tests/kafka_io/testing/modern/clients/test_spark.py",
        why="Spark's client needs a session of Spark. The embedded brokers answer all clients with the same handlers.",
        staying=(
            "tests/kafka_io/testing/modern/clients/test_confluent.py",
            "tests/kafka_io/testing/modern/clients/test_kafka_python.py",
        ),
    ),
    Moved(
        tests="tests/bench/test_cold_start.py::test_each_process_is_measured",
        why="The kernels of all formats are compiled for one measurement: half a minute of CPU time.",
        staying=(
            "tests/bench/test_cold_start.py::test_the_bench_fails_if_a_bound_is_missed",
            "tests/bench/test_many_topics.py::test_each_command_is_measured",
            "tests/kafka_io/jit/test_compiling.py",
        ),
    ),
    Moved(
        tests="tests/docs/test_tutorial.py::test_dagster_loads_the_topic_of_the_tutorial",
        why="`dagster dev` starts four processes, each of which imports Dagster: a minute, on a busy machine ten.",
        staying=(
            "tests/docs/test_tutorial.py::test_the_tutorial_works_from_top_to_bottom_with_the_packages_that_it_installs",
            "tests/ui/test_new_topics.py",
        ),
    ),
)


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: `make test` has the first `count` of the cases, and `make thorough` has the others."""
    assert count > 0
    values = list(cases)
    return values[:count] + [pytest.param(value, marks=pytest.mark.thorough) for value in values[count:]]


def spread(count: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: `make test` has `count` of the cases, spread from the first to the last one.

    `make thorough` has the others.
    """
    values = list(cases)
    kept = {number * (len(values) - 1) // max(count - 1, 1) for number in range(count)}
    return [value if number in kept else _thorough(value) for number, value in enumerate(values)]


def _thorough(value: object) -> Any:
    return also(*value) if isinstance(value, tuple) else also(value)


def also(*values: object) -> Any:
    """The parameters of one case that only `make thorough` has."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def mark_moved(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of MOVED."""
    for item in items:
        if any(item.nodeid.startswith(moved.tests) for moved in MOVED):
            item.add_marker(pytest.mark.thorough)


def mark_repeated_releases(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of real brokers of some versions, if the same test runs with other versions too."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.nodeid.startswith(_BROKERS):
            tests[item.nodeid.partition("[")[0]].append(item)
    units = {f"{_BROKERS} {version}" for version in _REPEATED_RELEASES}
    for cases in tests.values():
        repeated = [item for item in cases if unit_of(item.nodeid) in units]
        if len(repeated) < len(cases):
            for item in repeated:
                item.add_marker(pytest.mark.thorough)
