"""Tables and Dagster storage that an older version wrote: this version verifies, shows, repairs and continues them."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow.compute as pc
import pytest
from pipelines.defs.partitions import key_of, known_keys, run_tags, topic_of
from pipelines.defs.topic_group import TopicGroup, groups

from pipelines.defs.build import build_definitions
from resources.penstock import PenstockResource
from resources.settings import PATH_VARIABLE, Settings
from tests.golden.write_lake import SHOWN, TABLES, digest, gaps_of
from tests.stored_lake import StoredLake, expected, servers, unpacked

NAMES = [f"{cluster}/{topic}" for cluster, topic in TABLES]
EXPECTED = expected()
WORKSPACE = Path(__file__).parents[2] / "workspace.yaml"
MORE = 30


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredLake:
    """The lake as it was written. Nothing changes it."""
    return unpacked(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="module")
def dagster_lake(tmp_path_factory: pytest.TempPathFactory) -> StoredLake:
    """A copy that only Dagster loads into."""
    return unpacked(tmp_path_factory.mktemp("dagster"))


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> StoredLake:
    """A copy for repairs."""
    return unpacked(tmp_path_factory.mktemp("repaired"))


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, dagster_lake: StoredLake, repaired: StoredLake
) -> Iterator[StoredLake]:
    """A copy whose clusters run. The lakes of the other copies are loaded from the same clusters."""
    lake = unpacked(tmp_path_factory.mktemp("running"))
    with servers(lake, dagster_lake, repaired):
        yield lake


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_table_is_proven(stored: StoredLake, name: str) -> None:
    cluster, topic = name.split("/")
    (proof,) = stored.penstock("verify", topic, "--cluster", cluster)
    assert (proof["proven"], proof["problems"]) == (True, [])
    assert sum(partition["rows"] for partition in proof["partitions"]) == EXPECTED[name]["rows"]
    assert gaps_of(proof) == EXPECTED[name]["gaps"]


@pytest.mark.parametrize("name", NAMES)
def test_the_history_of_a_stored_table_is_shown(stored: StoredLake, name: str) -> None:
    cluster, topic = name.split("/")
    past = stored.penstock("history", topic, "--cluster", cluster, "--limit", "100")
    assert [{field: commit.get(field) for field in SHOWN} for commit in past] == EXPECTED[name]["history"]
    assert next(commit["covered"] for commit in past if commit["kind"]) == EXPECTED[name]["covered"]


def test_the_stored_lake_has_every_kind_of_commit_and_gap() -> None:
    commits = [commit for table in EXPECTED.values() for commit in table["history"]]
    assert {commit["kind"] for commit in commits} == {"load", "replay", "rewind", "cut", None}
    assert {commit["operation"] for commit in commits if not commit["kind"]} > {"DELETE", "OPTIMIZE", "VACUUM END"}
    assert {cause for table in EXPECTED.values() for cause in table["gaps"]} == {"expired", "aborted", "control"}


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
    assert digest(rows.filter(is_old).select(stored_rows.column_names)) == EXPECTED[name]["digest"]
    later = set(rows.column_names) - set(stored_rows.column_names)  # columns that a later version added
    assert all(rows[column].filter(is_old).null_count == len(stored_rows) for column in later)
    new = rows.filter(pc.invert(is_old))["value"].to_pylist()
    assert len(new) == load["rows"]
    assert Counter(new) >= Counter(lines.splitlines())  # other tests publish too
    (proof,) = running.penstock("verify", topic, "--deep", "--cluster", cluster)
    assert proof["proven"], proof["problems"]
    newest, *_ = running.penstock("history", topic, "--cluster", cluster)
    assert (newest["kind"], newest["version"]) == ("load", EXPECTED[name]["history"][0]["version"] + 1)


@pytest.mark.zookeeper
@pytest.mark.parametrize("name", ["old/clicks", "new/orders"])
def test_a_stored_table_is_rewound_replayed_and_filled_again(
    running: StoredLake, repaired: StoredLake, name: str
) -> None:
    assert running.settings.read_text() == repaired.settings.read_text()
    cluster, topic = name.split("/")
    stored_rows = repaired.rows(name)
    version = EXPECTED[name]["history"][0]["version"]
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
def definitions(dagster_lake: StoredLake, running: StoredLake) -> dg.Definitions:
    assert running.settings.read_text() == dagster_lake.settings.read_text()
    return build_definitions(Settings.load(dagster_lake.settings))


def topic_groups(lake: StoredLake) -> list[TopicGroup]:
    return list(groups(Settings.load(lake.settings)))


def group_of(lake: StoredLake, cluster: str) -> TopicGroup:
    (group,) = (group for group in topic_groups(lake) if group.cluster == cluster)
    return group


def stored_topics(cluster: str) -> set[str]:
    return {topic for name, topic in TABLES if name == cluster}


@pytest.mark.zookeeper
def test_partitions_and_events_in_the_stored_home_belong_to_the_same_assets(
    instance: dg.DagsterInstance, dagster_lake: StoredLake
) -> None:
    for group in topic_groups(dagster_lake):
        keys = known_keys(instance, group)
        assert {topic_of(key) for key in keys} >= stored_topics(group.cluster)
        for topic in stored_topics(group.cluster):
            of_topic = dg.AssetRecordsFilter(asset_key=group.tables, asset_partitions=[key_of(topic)])
            *_, oldest = instance.fetch_materializations(of_topic, limit=100).records
            assert oldest.asset_materialization is not None
            metadata = oldest.asset_materialization.metadata
            assert metadata["topic"].value == topic
            assert metadata["rows"].value == (20 if group.cluster != "new" else 10)


@pytest.mark.zookeeper
def test_names_in_the_stored_home_are_still_those_of_the_definitions(
    instance: dg.DagsterInstance, definitions: dg.Definitions
) -> None:
    assert set(instance.all_asset_keys()) <= set(definitions.resolve_asset_graph().get_all_asset_keys())
    repository = definitions.get_repository_def()
    declared = {sensor.name for sensor in repository.sensor_defs} | {
        schedule.name for schedule in repository.schedule_defs
    }
    states = instance.all_instigator_state()
    assert {state.instigator_name for state in states} == declared
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
    instance: dg.DagsterInstance, definitions: dg.Definitions, dagster_lake: StoredLake, cluster: str
) -> None:
    group = group_of(dagster_lake, cluster)
    keys = [key_of(topic) for topic in sorted(stored_topics(cluster))]
    for topic in stored_topics(cluster):
        dagster_lake.publish(cluster, topic, b"seen by Dagster\n")
    job = definitions.resolve_job_def(group.named("load"))
    run = job.execute_in_process(instance=instance, tags=run_tags(known_keys(instance, group)), raise_on_error=False)
    assert run.success
    loaded = {event.partition: event.materialization for event in run.get_asset_materialization_events()}
    for key in keys:
        name = f"{cluster}/{topic_of(key)}"
        rows = loaded[key].metadata["rows"].value
        assert dagster_lake.table(name).to_pyarrow_table().num_rows == EXPECTED[name]["rows"] + rows
        of_topic = dg.AssetRecordsFilter(asset_key=group.tables, asset_partitions=[key])
        newest, older, *_ = instance.fetch_materializations(of_topic, limit=2).records
        assert (newest.run_id, older.run_id != run.run_id) == (run.run_id, True)
        (proof,) = dagster_lake.penstock("verify", topic_of(key), "--cluster", cluster)
        assert proof["proven"], proof["problems"]


@pytest.mark.zookeeper
@pytest.mark.parametrize("cluster", ["old", "new"])
def test_the_stored_cursor_of_a_sensor_still_tells_which_topic_is_to_be_added(
    instance: dg.DagsterInstance, definitions: dg.Definitions, dagster_lake: StoredLake, cluster: str
) -> None:
    group = group_of(dagster_lake, cluster)
    sensor = definitions.resolve_sensor_def(f"new_topics__{cluster}")
    (state,) = [state for state in instance.all_instigator_state() if state.instigator_name == sensor.name]
    with dg.build_sensor_context(
        instance=instance,
        definitions=definitions,
        cursor=state.instigator_data.cursor,  # type: ignore[union-attr]
        resources={"penstock": PenstockResource()},
    ) as context:
        tick = sensor.evaluate_tick(context)
    (request,) = tick.dynamic_partitions_requests or ()
    assert (request.partitions_def_name, list(request.partition_keys)) == (group.partitions_name, ["late"])
    (run_request,) = tick.run_requests or ()
    assert run_request.job_name == group.named("load")
    assert run_request.tags.items() >= run_tags(["late"]).items()
