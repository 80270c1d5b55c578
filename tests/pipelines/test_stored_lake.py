"""Tables and Dagster storage that an older version wrote: this version verifies, shows, repairs and continues them."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.compute as pc
import pytest

from pipelines.defs.build import build_defs
from pipelines.defs.catalog.topic_keys import key_name
from resources import topic_names
from resources.settings.settings import PATH_VARIABLE
from tests.golden.write_lake import SHOWN, TABLES, digest, gaps_of
from tests.stored_lake import RELEASES, StoredLake, servers, unpacked
from tests.thorough import first

NAMES = [f"{cluster}/{topic}" for cluster, topic in TABLES]
WORKSPACE = Path(__file__).parents[2] / "workspace.yaml"
MORE = 30


@pytest.fixture(scope="module", params=first(1, RELEASES))
def release(request: pytest.FixtureRequest) -> str:
    """The version that wrote the lake."""
    return str(request.param)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, release: str) -> StoredLake:
    """The lake as it was written. Nothing changes it."""
    return unpacked(tmp_path_factory.mktemp("stored"), release)


@pytest.fixture(scope="module")
def dagster_lake(tmp_path_factory: pytest.TempPathFactory, release: str) -> StoredLake:
    """A copy that only Dagster loads into."""
    return unpacked(tmp_path_factory.mktemp("dagster"), release)


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory, release: str) -> StoredLake:
    """A copy for repairs."""
    return unpacked(tmp_path_factory.mktemp("repaired"), release)


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory, release: str) -> StoredLake:
    """A copy from which rows are erased."""
    return unpacked(tmp_path_factory.mktemp("erased"), release)


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
    release: str,
    dagster_lake: StoredLake,
    repaired: StoredLake,
    erased: StoredLake,
) -> Iterator[StoredLake]:
    """A copy whose clusters run. The lakes of the other copies are loaded from the same clusters."""
    lake = unpacked(tmp_path_factory.mktemp("running"), release)
    with servers(lake, dagster_lake, repaired, erased):
        yield lake


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_table_is_proven(stored: StoredLake, name: str) -> None:
    cluster, topic = name.split("/")
    (proof,) = stored.penstock("verify", topic, "--cluster", cluster)
    assert (proof["proven"], proof["problems"]) == (True, [])
    assert sum(partition["rows"] for partition in proof["partitions"]) == stored.expected[name]["rows"]
    assert gaps_of(proof) == stored.expected[name]["gaps"]


@pytest.mark.parametrize("name", NAMES)
def test_the_history_of_a_stored_table_is_shown(stored: StoredLake, name: str) -> None:
    cluster, topic = name.split("/")
    past = stored.penstock("history", topic, "--cluster", cluster, "--limit", "100")
    assert [{field: commit.get(field) for field in SHOWN} for commit in past] == stored.expected[name]["history"]
    assert next(commit["covered"] for commit in past if commit["kind"]) == stored.expected[name]["covered"]


def test_the_stored_lake_has_every_kind_of_commit_and_gap(stored: StoredLake) -> None:
    commits = [commit for table in stored.expected.values() for commit in table["history"]]
    assert {commit["kind"] for commit in commits} == {"load", "replay", "rewind", "cut", None}
    assert {commit["operation"] for commit in commits if not commit["kind"]} > {"DELETE", "OPTIMIZE", "VACUUM END"}
    assert {cause for table in stored.expected.values() for cause in table["gaps"]} == {"expired", "aborted", "control"}


def test_a_table_names_its_files_by_relative_paths(stored: StoredLake) -> None:
    logs = stored.home.glob("lake/**/_delta_log/*.json")
    actions = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    paths = [action[kind]["path"] for action in actions for kind in ("add", "remove") if kind in action]
    assert len(paths) > 50
    assert all(path.startswith("date=") for path in paths)


@pytest.mark.zookeeper
@pytest.mark.parametrize("name", NAMES)
def test_a_stored_table_is_continued(running: StoredLake, name: str) -> None:
    cluster, topic = name.split("/")
    stored_rows = running.table(name).to_pyarrow_table()
    loaded_until = pc.max(stored_rows["loaded_at"])
    lines = b"".join(b"more %d\n" % number for number in range(MORE))
    running.publish(cluster, topic, lines)
    (load,) = running.penstock("load", topic, "--cluster", cluster)
    assert load["errors"] == []
    rows = running.table(name).to_pyarrow_table()
    is_old = pc.less_equal(rows["loaded_at"], loaded_until)
    assert digest(rows.filter(is_old).select(stored_rows.column_names)) == running.expected[name]["digest"]
    later = set(rows.column_names) - set(stored_rows.column_names)  # columns that a later version added
    assert all(rows[column].filter(is_old).null_count == len(stored_rows) for column in later)
    new = rows.filter(pc.invert(is_old))["value"].to_pylist()
    assert len(new) == load["rows"]
    assert Counter(new) >= Counter(lines.splitlines())  # other tests publish too
    (proof,) = running.penstock("verify", topic, "--deep", "--cluster", cluster)
    assert proof["proven"], proof["problems"]
    newest, *_ = running.penstock("history", topic, "--cluster", cluster)
    assert (newest["kind"], newest["version"]) == ("load", running.expected[name]["history"][0]["version"] + 1)


@pytest.mark.zookeeper
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_stored_table_are_erased_and_it_is_continued(
    running: StoredLake, erased: StoredLake, name: str
) -> None:
    """All rows with the value of the oldest one go. The brokers still have some of these records."""
    cluster, topic = name.split("/")
    values = Counter(erased.table(name).to_pyarrow_table().column("value").to_pylist())
    value, count = next((value, count) for value, count in values.items() if value and b"'" not in value)
    [result] = erased.penstock("erase", topic, "--cluster", cluster, "--where", f"value = '{value.decode()}'", "--yes")
    assert result["rows"] == count
    for command in (("verify",), ("load",), ("verify", "--deep")):
        if command == ("load",):
            running.publish(cluster, topic, b"after the erasure\n" * MORE)
        [proof] = erased.penstock(*command, topic, "--cluster", cluster)
        assert proof.get("proven", True), proof["problems"]
        assert not proof.get("errors")
    after = Counter(erased.table(name).to_pyarrow_table().column("value").to_pylist())
    assert after[value] == 0
    assert after[b"after the erasure"] == MORE
    del values[value]
    assert after >= values


@pytest.mark.zookeeper
@pytest.mark.parametrize("name", ["old/clicks", "new/orders"])
def test_a_stored_table_is_rewound_replayed_and_filled_again(
    running: StoredLake, repaired: StoredLake, name: str
) -> None:
    assert running.settings.read_text() == repaired.settings.read_text()
    cluster, topic = name.split("/")
    stored_rows = repaired.rows(name)
    version = repaired.expected[name]["history"][0]["version"]
    repaired.penstock("rewind", topic, "--version", str(version - 1), "--yes", "--cluster", cluster)
    assert len(repaired.rows(name)) < len(stored_rows)
    (load,) = repaired.penstock("load", topic, "--cluster", cluster)
    assert stored_rows <= repaired.rows(name)
    (partition,) = [part for part in load["partitions"] if part["partition"] == 1 and part["broker"] in {1, None}]
    place = str(partition["partition"]) if partition["broker"] is None else "1-1"
    offsets = ("--from", str(partition["start"]), "--to", str(partition["end"]))
    (replay,) = repaired.penstock("replay", topic, "--partition", place, *offsets, "--cluster", cluster)
    assert (replay["errors"], replay["changed"]) == ([], False)
    (proof,) = repaired.penstock("verify", topic, "--deep", "--cluster", cluster)
    assert proof["proven"], proof["problems"]


@pytest.fixture
def instance(
    dagster_lake: StoredLake, running: StoredLake, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """Dagster on its stored home; the clusters run."""
    assert running.settings.read_text() == dagster_lake.settings.read_text()
    monkeypatch.setenv(PATH_VARIABLE, str(dagster_lake.settings))
    with dg.DagsterInstance.from_config(str(dagster_lake.home / "dagster")) as opened:
        yield opened


@pytest.fixture
def upgraded(instance: dg.DagsterInstance, dagster_lake: StoredLake, monkeypatch: pytest.MonkeyPatch) -> dg.Definitions:
    """The definitions after the sensors have upgraded the stored home; nothing is left to do for later tests."""
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_lake.home / "dagster"))
    for cluster in ("old", "new"):
        evaluate(instance, build_defs(dagster_lake.settings), cluster)
    return build_defs(dagster_lake.settings)


def evaluate(instance: dg.DagsterInstance, definitions: dg.Definitions, cluster: str) -> Any:
    """One tick of the sensor of new topics, with the stored cursor."""
    sensor = definitions.resolve_sensor_def(f"new_topics__{cluster}")
    (state,) = [state for state in instance.all_instigator_state() if state.instigator_name == sensor.name]
    cursor = state.instigator_data.cursor  # type: ignore[union-attr]
    with dg.build_sensor_context(instance=instance, definitions=definitions, cursor=cursor) as context:
        return sensor.evaluate_tick(context)


def key_of(name: str) -> dg.AssetKey:
    """The key of the table of `<cluster>/<topic>`."""
    cluster, _, topic = name.partition("/")
    return dg.AssetKey(["lake", cluster, key_name(topic)])


def stored_topics(cluster: str) -> set[str]:
    return {topic for name, topic in TABLES if name == cluster}


@pytest.mark.zookeeper
def test_the_upgrade_gives_each_topic_an_asset_with_its_newest_load(
    tmp_path: Path, release: str, running: StoredLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_lake = unpacked(tmp_path, release)
    own_lake.settings.write_text(running.settings.read_text())  # the ports of the running servers
    monkeypatch.setenv("DAGSTER_HOME", str(own_lake.home / "dagster"))
    with dg.DagsterInstance.get() as instance:
        check_upgrade(instance, own_lake.settings)


def check_upgrade(instance: dg.DagsterInstance, settings: Path) -> None:
    """Evaluate the sensors on a stored home that no test has changed."""
    before = {cluster: set(instance.get_dynamic_partitions(f"{cluster}/topics")) for cluster in ("old", "new")}
    assert all(before.values())
    events = {key: len(instance.fetch_materializations(key, limit=100).records) for key in instance.all_asset_keys()}
    defs = build_defs(settings)
    for cluster in ("old", "new"):
        reason = evaluate(instance, defs, cluster).skip_message
        assert f"upgraded {len(before[cluster])} topics of the asset lake/{cluster}/topics" in reason
        assert instance.get_dynamic_partitions(f"{cluster}/topics") == []
        known = instance.get_dynamic_partitions(f"penstock/{cluster}")
        assert {topic_names.encode(topic) for topic in known} >= before[cluster]
        for topic in stored_topics(cluster):
            event = instance.get_latest_materialization_event(key_of(f"{cluster}/{topic}"))
            assert event is not None
            assert event.asset_materialization is not None
            metadata = event.asset_materialization.metadata
            assert metadata["topic"].value == topic
            assert metadata["table_version"].value
            assert metadata["rows"].value is not None
    for key, count in events.items():
        assert len(instance.fetch_materializations(key, limit=100).records) == count
    assert "upgraded" not in str(evaluate(instance, defs, "old").skip_message)


@pytest.mark.zookeeper
def test_jobs_schedules_and_sensors_keep_their_names(instance: dg.DagsterInstance, upgraded: dg.Definitions) -> None:
    repository = upgraded.get_repository_def()
    declared = {sensor.name for sensor in repository.sensor_defs} | {
        schedule.name for schedule in repository.schedule_defs
    }
    states = instance.all_instigator_state()
    added = {name for name in declared if name.startswith("clean__")}  # since 0.6.0
    assert {state.instigator_name for state in states} == declared - added
    (origin,) = {state.origin.repository_origin for state in states}
    assert f"location_name: {origin.code_location_origin.location_name}\n" in WORKSPACE.read_text()
    assert origin.repository_name == repository.name
    jobs = {job.name for job in repository.get_all_jobs()}
    assert {run.job_name for run in instance.get_runs()} <= jobs


@pytest.mark.zookeeper
def test_stored_runs_can_be_looked_at(instance: dg.DagsterInstance) -> None:
    runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS]))
    by_job = {run.job_name: run for run in runs}
    assert len(by_job) >= 9
    for run in by_job.values():
        events = {entry.dagster_event.event_type for entry in instance.all_logs(run.run_id) if entry.dagster_event}
        assert dg.DagsterEventType.RUN_SUCCESS in events


@pytest.mark.zookeeper
@pytest.mark.parametrize("cluster", ["old", "new"])
def test_a_run_on_the_stored_home_continues_the_tables(
    instance: dg.DagsterInstance, upgraded: dg.Definitions, dagster_lake: StoredLake, cluster: str
) -> None:
    names = [f"{cluster}/{topic}" for topic in sorted(stored_topics(cluster))]
    for topic in stored_topics(cluster):
        dagster_lake.publish(cluster, topic, b"seen by Dagster\n")
    group_job = upgraded.resolve_job_def(f"load__{cluster}__topics")
    job = group_job.get_subset(asset_selection=set(map(key_of, names)), asset_check_selection=set())
    run = job.execute_in_process(instance=instance, raise_on_error=False)
    assert run.success
    loaded = {event.asset_key: event.materialization for event in run.get_asset_materialization_events()}
    for name in names:
        rows = loaded[key_of(name)].metadata["rows"].value
        assert dagster_lake.table(name).to_pyarrow_table().num_rows == dagster_lake.expected[name]["rows"] + rows
        newest, older, *_ = instance.fetch_materializations(key_of(name), limit=2).records
        assert (newest.run_id, older.run_id != run.run_id) == (run.run_id, True)
        (proof,) = dagster_lake.penstock("verify", name.partition("/")[2], "--cluster", cluster)
        assert proof["proven"], proof["problems"]


@pytest.mark.zookeeper
@pytest.mark.parametrize("cluster", ["old", "new"])
def test_a_topic_that_was_to_be_added_before_the_upgrade_is_found_again(
    instance: dg.DagsterInstance, upgraded: dg.Definitions, cluster: str
) -> None:
    tick = evaluate(instance, upgraded, cluster)
    (request,) = tick.run_requests
    assert request.job_name == f"load__{cluster}__topics"
    assert [key.path[-1] for key in request.asset_selection or ()] == ["late"]
