"""Chooses the tests that `make test` leaves to `make full`, and the cases that both leave to `make thorough`.

`make test` is for each change, so it has no test that takes more than a second of CPU time: these are in
`long_tests.txt`, by the beginnings of their node ids. `make full` has them, and CI runs it for each commit. `make unit`
also leaves out the tests in `slow_tests.txt`, whose cases took more than a tenth of a second on average.

The cases of `make thorough` repeat a law that another case tests. Such a case has another seed, another version of
Kafka's brokers, or another pair of parameters. Each law keeps at least one case in `make full`. Of tests whose cases
take seconds each, STAYING lists the cases that stay. What takes long is left out as a whole, if a cheaper test breaks
with the same law: MOVED tells what, why, and which tests stay.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.spreading import unit_of

_REPEATED_RELEASES = ("0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.1")
"""What brokers of these versions speak, the version before or after them speaks too, except for some APIs. The messages
of 0.10 are also in a log of 2.8.2, which test_loads.py loads."""
_BROKERS = "tests/brokers/"
_QUICK_RELEASE = "4.1.0"
"""The version of the real brokers that `make test` starts."""
LONG, SLOW = (
    tuple(Path(__file__).with_name(name).read_text().splitlines()) for name in ("long_tests.txt", "slow_tests.txt")
)
_LEADER_KILLED = (
    "tests/brokers/test_matrix_leaders.py::test_a_leader_killed_during_a_read_causes_no_gap_and_no_duplicate"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Tests that take too long for `make full`, whose laws other tests keep there.

    Args:
        tests: how the node ids of the tests begin.
        why: what they do beyond the tests that stay.
        staying: how the node ids of tests of `make full` begin that break if the same law breaks.
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
        staying=("tests/pipelines/defs/test_scale.py", "tests/pipelines/defs/catalog/test_metadata.py"),
    ),
    Moved(
        tests="tests/ui/test_many.py",
        why="Three runs load twelve topics, and Chromium draws large pages.",
        staying=("tests/pipelines/defs/test_scale.py", "tests/pipelines/defs/catalog/test_metadata.py"),
    ),
    Moved(
        tests="tests/ui/test_ui.py",
        why="Chromium needs ten seconds of CPU time for each of Dagster's pages, after a load with Spark.",
        staying=(
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
        staying=("tests/spark/test_loads.py::test_an_interrupted_load_ends_its_tasks_and_commits_nothing",),
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
            "tests/bench/test_many_topics.py::test_a_bound_is_missed_above_its_cpu_time",
            "tests/kafka_io/jit/test_compiling.py",
        ),
    ),
    Moved(
        tests="tests/docs/test_tutorial.py::test_dagster_loads_the_topic_of_the_tutorial",
        why="`dagster dev` starts four processes, each of which imports Dagster: a minute, on a busy machine ten.",
        staying=(
            "tests/docs/test_tutorial.py::test_the_tutorial_works_from_top_to_bottom_with_the_packages_that_it_installs",
            "tests/pipelines/defs/test_dev_command.py::test_one_command_starts_all_programs",
        ),
    ),
    Moved(
        tests="tests/ui/test_new_topics.py",
        why="Dagster's webserver, daemon and code server, a run and Chromium: more than a minute of CPU time.",
        staying=(
            "tests/pipelines/defs/sensors/test_new_topics.py",
            "tests/pipelines/defs/runs/test_run.py",
            "tests/pipelines/defs/test_dev_command.py::test_one_command_starts_all_programs",
        ),
    ),
    Moved(
        tests="tests/ui/test_site.py::test_the_search_finds_a_setting_on_its_page",
        why="Chromium reads the index of all pages.",
        staying=("tests/ui/test_site.py::test_a_page_draws_its_diagram_and_fetches_nothing_from_another_host",),
    ),
    Moved(
        tests="tests/spark/test_loads.py::test_records_of_a_schema_that_only_workers_have_met_are_decoded",
        why="Several loads at each of Spark's sites.",
        staying=(
            "tests/spark/test_loads.py::test_the_same_load_runs_at_every_site",
            "tests/pipelines/fetch/test_schema_ids.py",
        ),
    ),
    Moved(
        tests="tests/spark/test_loads.py::test_a_load_is_complete_although_a_host_is_killed",
        why="Spark notices the death of a host after its own timeouts.",
        staying=(
            "tests/spark/test_loads.py::test_two_attempts_of_a_slow_task_write_each_row_once",
            "tests/crash/test_workers.py",
        ),
    ),
    Moved(
        tests="tests/spark/test_loads.py::test_free_cores_fetch_the_next_steps_while_a_step_waits_for_its_last_slice",
        why="It starts sessions of Spark with several cores.",
        staying=("tests/pipelines/load/test_load_topics.py", "tests/simulation/test_steps_ahead.py"),
    ),
    Moved(
        tests="tests/crash/test_workers.py::test_a_load_survives_workers_that_exit_by_themselves",
        why="The same workers of Spark, which end at each failpoint in another way.",
        staying=("tests/crash/test_workers.py::test_a_load_survives_workers_that_are_killed_at_each_failpoint",),
    ),
    Moved(
        tests="tests/crash/test_chance.py::test_a_run_reports_how_drivers_ended",
        why="A search of its own, with a ZooKeeper and brokers of its own.",
        staying=("tests/crash/test_chance.py::test_the_table_is_correct_after_a_random_story",),
    ),
    Moved(
        tests="tests/simulation/test_command.py::test_the_printed_command_repeats_the_world_that_broke_a_law",
        why="It simulates in a process of its own until a law is broken, twice.",
        staying=("tests/simulation/test_world.py::test_the_same_seed_has_the_same_trace",),
    ),
    Moved(
        tests="tests/mutation/test_mistakes.py",
        why="The tests of twelve files run on twelve mistakes.",
        staying=("tests/mutation/test_run.py", "tests/mutation/test_mutants.py"),
    ),
    Moved(
        tests="tests/fuzz/test_tables.py::test_spark_finds_each_row_by_each_of_its_values",
        why="Spark plans a query for each value.",
        staying=(
            "tests/fuzz/test_tables.py::test_spark_finds_odd_names_and_values",
            "tests/fuzz/test_tables.py::test_odd_names_and_values_are_found_by_all_readers",
        ),
    ),
    Moved(
        tests="tests/fuzz/test_memory.py::test_memory_is_bounded_for_valid_and_for_corrupt_logs",
        why="Hundreds of logs are decoded in a process whose memory is measured.",
        staying=("tests/fuzz/test_mutations.py", "tests/kafka_io/records/test_decode_hostile.py"),
    ),
    Moved(
        tests="tests/kafka_io/records/test_compiler_off.py",
        why="Laws of the kernels run without a compiler, so that each byte is read by Python.",
        staying=("tests/kafka_io/records/test_decode_hostile.py", "tests/kafka_io/records/test_v07_kernels.py"),
    ),
    Moved(
        tests="tests/bench/test_many_topics.py::test_each_command_is_measured",
        why="Commands over hundreds of topics.",
        staying=(
            "tests/bench/test_many_topics.py::test_the_bench_fails_if_a_bound_is_missed",
            "tests/pipelines/load/test_load_topics.py",
        ),
    ),
    Moved(
        tests="tests/pipelines/defs/test_two_days.py",
        why="The ticks of two days.",
        staying=(
            "tests/pipelines/defs/sensors/test_schedules.py",
            "tests/pipelines/defs/sensors/test_complete_hours.py",
        ),
    ),
    Moved(
        tests="tests/docs/test_increments_page.py::test_the_examples_have_each_effect_once",
        why="All examples of the page run several times, with Spark and three kinds of outputs.",
        staying=("tests/pipelines/increments/test_outputs.py", "tests/pipelines/increments/test_spark_frames.py"),
    ),
    Moved(
        tests="tests/docs/test_examples.py::test_the_project_with_a_component",
        why="A project of Dagster is made and loaded by Dagster's own command.",
        staying=(
            "tests/docs/test_examples.py::test_the_component_on_the_page_is_complete",
            "tests/pipelines/defs/test_component.py",
        ),
    ),
    Moved(
        tests="tests/brokers/test_apicurio.py",
        why="It starts a registry in Java.",
        staying=("tests/kafka_io/schema_registry/test_client.py", "tests/pipelines/routes/test_schema_routes.py"),
    ),
    Moved(
        tests="tests/brokers/test_real.py::test_a_killed_broker_still_has_its_records_after_a_restart",
        why="It tests our way to start brokers.",
        staying=("tests/brokers/test_real.py::test_a_broker_stores_records_and_leaves_no_process_behind",),
    ),
    Moved(
        tests="tests/brokers/test_real.py::test_a_broker_ends_when_its_parent_process_is_killed",
        why="It tests our way to start brokers.",
        staying=("tests/test_postgres_server.py::test_a_server_whose_owner_is_killed_ends",),
    ),
)


STAYING = {
    "tests/brokers/test_erased_places.py::test_no_byte_of_an_erased_person_is_left": (
        "json_with_a_state_table-3.9.1-store",
        "raw-3.9.1-store",
    ),
    "tests/brokers/test_groups.py::test_members_of_three_clients_join_and_leave_and_no_record_is_missed": (
        "4.1.0-cooperative-sticky",
    ),
    "tests/brokers/test_matrix_leaders.py::test_a_leader_killed_during_a_read_causes_no_gap_and_no_duplicate": (
        "4.1.0",
    ),
    "tests/brokers/test_matrix_refusals.py::test_a_recreated_topic_is_refused": ("4.1.0",),
    "tests/brokers/test_matrix_security.py::test_a_client_certificate_is_sent_if_the_broker_requires_one": (
        "secure-3.9.1-MTLS",
    ),
    "tests/brokers/test_real.py::test_a_broker_stores_records_and_leaves_no_process_behind": ("4.1.0-kraft",),
    "tests/crash/test_consumer_kills.py::test_a_killed_consumer_is_completed_by_the_next": (
        "delta-after increment entry",
        "delta-increment synced",
        "duckdb-before output transaction",
        "duckdb-progress moved",
        "state-before increment entry",
        "state-increment batch written",
        "state-state file written",
    ),
    "tests/crash/test_consumer_kills.py::test_a_killed_consumer_of_postgres_is_completed_by_the_next": (
        "postgres-output transaction committed",
        "postgres-rows inserted",
    ),
    "tests/crash/test_full_disk.py::test_a_load_without_disk_space_fails_and_the_next_one_loads_the_rest": (
        "slices1-<lambda>-LakeUnavailable: the commit did not land: -False",
        "slices2-<lambda>-file too large-True",
    ),
    "tests/crash/test_kill.py::test_a_load_whose_driver_is_killed_is_completed_by_the_next_one": (
        "after rewind entry-one world",
        "file synced-one world",
        "log entry written-one world",
        "redecode staged-one world",
        "replay staged-one world",
    ),
    "tests/crash/test_kill.py::test_a_load_that_is_killed_while_it_adds_columns_is_completed_by_the_next_one": (
        "before load entry-0",
    ),
    "tests/crash/test_kill.py::"
    "test_a_load_that_is_killed_while_it_writes_the_files_of_days_is_completed_by_the_next_one": ("log entry written",),
    "tests/crash/test_chance.py::test_the_table_is_correct_after_a_random_story": ("0",),
    "tests/crash/test_races.py::test_a_driver_that_is_resumed_late_reports_that_everything_is_committed": (
        "before load entry-0.7",
        "file opened-modern",
    ),
    "tests/crash/test_races.py::test_a_driver_that_is_resumed_late_finds_its_own_commit": (
        "after load entry",
        "log entry written",
    ),
    "tests/crash/test_races.py::test_a_driver_that_is_resumed_late_with_another_plan_loads_the_rest": (
        "before load entry",
    ),
    "tests/crash/test_races.py::test_a_driver_that_is_resumed_while_it_adds_columns_finds_those_of_another_run": (
        "text",
    ),
    "tests/crash/test_races.py::test_a_table_is_created_once": ("0", "1"),
    "tests/crash/test_races.py::test_two_drivers_that_both_bring_a_new_schema_add_its_columns_once": ("plan0",),
    "tests/crash/test_removals.py::test_a_command_that_is_killed_changes_all_of_its_rows_or_none": (
        "erase-erasure staged",
        "erase-log entry synced",
        "finish-log entry scrubbed",
        "retire-log entry written",
    ),
    "tests/crash/test_removals.py::test_a_killed_command_also_changes_what_was_loaded_after_it": (
        "erase-before erase entry",
    ),
    "tests/crash/test_removals.py::"
    "test_a_load_that_is_killed_beside_a_set_of_skipped_records_is_completed_by_the_next_one": ("after load entry",),
    "tests/crash/test_removals.py::test_a_replay_after_a_killed_command_brings_nothing_back": ("erase", "erase 0.7"),
    "tests/docs/test_installs.py::test_definitions_load_with_what_the_page_installs": ("python",),
    "tests/fuzz/test_tables.py::test_a_dot_in_a_name_is_no_path": ("of three levels", "after a struct"),
    "tests/fuzz/test_tables.py::test_a_nul_in_a_name_is_replaced": ("beside its twin", "nested"),
    "tests/fuzz/test_tables.py::test_odd_names_and_values_are_found_by_all_readers": ("Avro and JSON", "Protobuf"),
    "tests/fuzz/test_tables.py::test_spark_finds_odd_names_and_values": ("Avro and JSON",),
    "tests/kafka_io/consumer/group/test_mixed.py::test_each_message_is_read_and_each_partition_has_one_owner": (
        "ours-cooperative-sticky",
    ),
    "tests/pipelines/certificates/test_certify.py::test_a_value_is_found_wherever_it_is_left": (
        "a kept batch",
        "an escaped text of a log",
        "kept bytes",
    ),
    "tests/pipelines/cli/test_laws.py::test_a_closed_pipe_changes_nothing_but_the_output": ("arguments1",),
    "tests/pipelines/defs/runs/test_run.py::test_a_check_that_keeps_failing_stays_red_after_the_next_load": ("True",),
    "tests/pipelines/defs/runs/test_run.py::"
    "test_a_run_does_not_wait_for_its_next_attempt_while_others_wait_for_its_place": ("during the wait",),
    "tests/pipelines/defs/sensors/test_alerts.py::test_checks_give_alerts_on_every_storage_at_every_tick": ("sqlite",),
    "tests/pipelines/delta/test_personal_columns.py::test_a_scrub_that_is_killed_is_continued": ("log entry scrubbed",),
    "tests/pipelines/fetch/test_imports.py::test_a_load_imports_a_decoder_only_if_the_topic_has_new_records": (
        '[topics.clicks]\\nformat = "json"\\n',
    ),
    "tests/pipelines/increments/test_difference.py::test_every_pair_of_versions_of_a_long_history_has_its_difference": (
        "0",
        "1",
    ),
    "tests/pipelines/increments/test_erased.py::"
    "test_a_consumer_that_is_hundreds_of_versions_behind_loses_the_erased_rows": ("apply",),
    "tests/pipelines/increments/test_grown_maps.py::test_one_increment_brings_a_member_and_removes_rows_of_old_files": (
        "list-maps grown",
        "map-",
    ),
    "tests/pipelines/increments/test_histories.py::test_an_output_equals_a_full_recomputation": (
        "delta-apply-0",
        "duckdb-fail-0",
        "postgres-ignore-0",
    ),
    "tests/pipelines/increments/test_kills.py::test_an_increment_that_ends_anywhere_has_all_of_its_effect_or_none": (
        "delta-0",
    ),
    "tests/pipelines/increments/test_kills.py::test_racing_consumers_commit_an_increment_once": ("duckdb",),
    "tests/pipelines/increments/test_spark_frames.py::test_an_output_in_a_database_takes_a_frame_of_spark": ("duckdb",),
    "tests/pipelines/maintenance/test_clean_state.py::"
    "test_an_update_is_repeated_if_another_update_was_first_and_the_files_of_both_were_cleaned": (
        "pipelines.state_tables.update-state rows decided",
    ),
    "tests/pipelines/maintenance/test_erased_files.py::test_what_was_killed_is_continued": (
        "checkpoint scrubbed:1",
        "file cleaned:1",
    ),
    "tests/pipelines/maintenance/test_grown_maps.py::"
    "test_a_compaction_that_is_killed_between_its_commits_is_done_by_the_next_one": ("map in a list",),
    "tests/pipelines/maintenance/test_grown_maps.py::test_a_run_that_ends_after_its_first_commit_harms_nothing": (
        "map in a list-clean-1",
        "map in a list-redecode-1",
        "value-replay-2",
    ),
    "tests/pipelines/maintenance/test_grown_maps.py::test_rows_are_fetched_again": (
        "map in a list-4-5",
        "value-earliest-latest",
    ),
    "tests/pipelines/maintenance/test_retire_histories.py::test_table_and_consumer_have_the_rows_of_the_model": ("0",),
    "tests/pipelines/rewrites/test_replay_races.py::test_a_replay_that_is_killed_is_done_by_the_next_one": (
        "after replay entry",
        "replay staged",
    ),
    "tests/pipelines/routes/test_routed_load.py::test_a_table_that_was_rewound_gets_its_rows_again_and_others_none": (
        "orders",
    ),
    "tests/pipelines/state_tables/test_histories.py::test_a_state_table_equals_a_full_recomputation": ("90000000-0",),
    "tests/pipelines/test_stored_lake.py::test_a_run_on_the_stored_home_continues_the_tables": ("0.6.0-new",),
    "tests/pipelines/test_stored_lake.py::test_rows_of_a_stored_table_are_erased_and_it_is_continued": (
        "0.6.0-middle/clicks",
        "0.6.0-new/orders",
        "0.6.0-new/payments",
    ),
    "tests/simulation/test_day_world.py::test_no_law_is_broken_in_worlds_with_folders_of_days": ("typed",),
    "tests/simulation/test_removal_world.py::"
    "test_a_world_with_more_of_the_events_of_a_fault_breaks_no_law_without_it": (
        "a log has lost only what a row of the table shows",
        "a redecode writes rows that were erased meanwhile",
        "a replay does not know what was taken out",
    ),
    "tests/simulation/test_world.py::test_a_world_with_more_of_the_events_of_a_fault_breaks_no_law_without_it": (
        "a cut or a replay is committed on top of any version",
        "a message that the log does not show counts as lost",
        "a topic id stands for the content",
        "records of a later leader are read into a range of an earlier epoch",
        "rows that another writer deleted become a gap",
    ),
}
"""Cases of tests that stay in `make full`, by the tests' node ids."""


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: `make full` has the first `count` of the cases, and `make thorough` has the others."""
    assert count > 0
    values = list(cases)
    return values[:count] + [pytest.param(value, marks=pytest.mark.thorough) for value in values[count:]]


def spread(count: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: `make full` has `count` of the cases, spread from the first to the last one.

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


def mark_long(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of LONG, and those with real brokers of another version than the one of `make test`."""
    for item in items:
        is_other_release = item.nodeid.startswith(_BROKERS) and _QUICK_RELEASE not in unit_of(item.nodeid)
        if is_other_release or item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of SLOW. Others have the mark in their file, with the reason."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def mark_moved(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of MOVED, and the cases of the tests in STAYING that do not stay."""
    for item in items:
        test, _, case = item.nodeid.removesuffix("]").partition("[")
        is_moved = any(item.nodeid.startswith(moved.tests) for moved in MOVED)
        if is_moved or (test in STAYING and case not in STAYING[test]):
            item.add_marker(pytest.mark.thorough)


def unknown_cases(items: Iterable[pytest.Item]) -> list[str]:
    """The cases of STAYING that do not exist, if their files were collected as a whole."""
    collected = {item.nodeid for item in items}
    files = {nodeid.partition("::")[0] for nodeid in collected}
    named = (f"{test}[{case}]" for test, cases in STAYING.items() for case in cases)
    return [nodeid for nodeid in named if nodeid.partition("::")[0] in files and nodeid not in collected]


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
