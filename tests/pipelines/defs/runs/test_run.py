"""Runs over a modern broker in this process: small loads need neither Spark nor ZooKeeper."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.defs.catalog.known_topics import Waiting
from pipelines.defs.runs.run import ScheduleRun
from pipelines.defs.runs.run_tags import ATTEMPT_TAG
from pipelines.defs.sensors.alerts import Watched, failed_runs_sensor
from resources.errors import LakeUnavailable
from resources.kafka import open_cluster
from resources.penstock import PenstockResource
from resources.settings.settings import PATH_VARIABLE, Retries, Settings
from tests.live import numbered
from tests.pipelines.defs.declared import (
    LOAD,
    defs_of,
    failure,
    job,
    key,
    loaded,
    observed,
    run,
    shown_on_page,
    storage_of,
    tick,
    verdicts,
)
from tests.publishing import publish_by_settings

pytestmark = pytest.mark.slow  # whole runs of Dagster


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The settings of a running cluster `main`. The environment names their file."""
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker")) as broker:
        file = tmp_path / "penstock.toml"
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n')
        monkeypatch.setenv(PATH_VARIABLE, str(file))
        yield Settings.load(file)


def test_a_run_loads_its_topics_and_shows_their_status(instance: dg.DagsterInstance, settings: Settings) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    result = run(instance, ["clicks"])
    assert result.success
    metadata = loaded(result)["clicks"]
    assert (metadata["rows"], metadata["lag_before"], metadata["lag"], metadata["lag_seconds"]) == (20, 20, 0, 0.0)
    assert verdicts(result)["clicks"]["coverage"].passed
    watched = job(instance, "watch").get_asset_check_evaluations()
    assert [check.passed for check in watched] == [True] * 3


def test_a_load_fills_the_catalog(instance: dg.DagsterInstance, settings: Settings) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    first = run(instance, ["clicks"])
    publish_by_settings(settings, "clicks", numbered(5))
    second = run(instance, ["clicks"])
    metadata = loaded(second)["clicks"]
    assert (metadata["rows"], metadata["dagster/row_count"]) == (5, 25)
    assert metadata["dagster/uri"] == str(Path(settings.lake) / "main" / "clicks")
    columns = {column.name: column.type for column in metadata["dagster/column_schema"].columns}
    assert columns.items() >= {"value": "binary", "offset": "long"}.items()
    versions = [
        (event.materialization.tags or {})["dagster/data_version"]
        for result in (first, second)
        for event in result.get_asset_materialization_events()
    ]
    assert [version.rpartition(" ")[0] for version in versions] == ["0:20", "0:25"]
    stored_run = instance.get_run_by_id(second.run_id)
    assert stored_run is not None
    tags = stored_run.tags
    assert (tags["topics"], tags["cluster"]) == ("clicks", "main")
    assert not [name for name in tags if "worker" in name and not name.startswith(".dagster/")]


def test_a_load_of_a_typed_table_reports_new_columns_and_bad_records(
    instance: dg.DagsterInstance, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(f"{file.read_text()}[topics.orders]\nformat = 'json'\nmax_bad_share = 1\n")
    typed = Settings.load(file)
    passed = []
    for values in ([b'{"id": 1}'], [b'{"id": 2}'], [b'{"id": 3, "name": "x"}', b"no object"]):
        publish_by_settings(typed, "orders", values)
        result = run(instance, ["orders"], settings=typed)
        assert result.success
        passed.append(verdicts(result)["orders"]["schema_changes"])
    assert [check.passed for check in passed] == [True, True, False]
    assert passed[-1].description == "new column name (string)"
    assert loaded(result)["orders"]["bad_records"] == 1
    assert not verdicts(result)["orders"]["bad_records"].passed
    watched = verdicts(job(instance, "watch", settings=typed))["orders"]
    assert not {"bad_records", "schema_changes"} & watched.keys()  # their results are the same as those of the load


# fault E17
@pytest.mark.parametrize("asked_after_load", [True, False])
def test_a_check_that_keeps_failing_stays_red_after_the_next_load(
    asked_after_load: bool,
    instance: dg.DagsterInstance,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the brokers did not answer after the load, the next run of the schedule `watch` reports it."""
    file = tmp_path / "penstock.toml"
    file.write_text(f"{file.read_text()}[topics.orders]\nformat = 'json'\nmax_bad_share = 1\n")
    typed = Settings.load(file)
    publish_by_settings(typed, "orders", [b"no object"])
    assert run(instance, ["orders"], settings=typed).success
    job(instance, "watch", settings=typed)
    assert shown_on_page(instance, "orders", "bad_records") is False
    for number in range(2):
        publish_by_settings(typed, "orders", [b'{"id": %d}' % number])
        with monkeypatch.context() as patch:
            if not asked_after_load:
                patch.setattr(ScheduleRun, "ask_statuses_after", lambda _: None)
            assert run(instance, ["orders"], settings=typed).success
        assert shown_on_page(instance, "orders", "coverage") is True
        assert shown_on_page(instance, "orders", "bad_records") is (False if asked_after_load else None)
        reported = [verdicts(job(instance, "watch", settings=typed)).get("orders", {}).keys() for _ in range(2)]
        assert [("bad_records" in names) for names in reported] == [not asked_after_load, False]
        assert shown_on_page(instance, "orders", "bad_records") is False


# fault E25
def test_a_failed_proof_is_red_in_a_run_in_which_another_topic_fails(
    instance: dg.DagsterInstance, settings: Settings
) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    assert run(instance, ["clicks"]).success
    assert shown_on_page(instance, "clicks", "coverage") is True
    next((Path(settings.lake) / "main" / "clicks").rglob("*.parquet")).unlink()
    publish_by_settings(settings, "clicks", numbered(5))
    result = run(instance, ["clicks", "gone"])
    assert (result.success, loaded(result)["clicks"]["rows"]) == (False, 5)
    assert shown_on_page(instance, "clicks", "coverage") is False
    (failed,) = [check for check in result.get_asset_check_evaluations() if check.check_name == "coverage"]
    assert (failed.asset_key, failed.passed) == (key("clicks"), False)


def test_a_run_reads_the_settings_once_and_opens_its_cluster_once(
    instance: dg.DagsterInstance, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit of the file does not give a run two settings, and all topics share the connections."""
    for name in ("a", "b", "c"):
        publish_by_settings(settings, name, numbered(5))
    assert run(instance, ["a", "b", "c"]).success
    reads, opened = Mock(wraps=Settings.load), Mock(wraps=open_cluster)
    monkeypatch.setattr(Settings, "load", reads)
    monkeypatch.setattr("resources.penstock.open_cluster", opened)
    publish_by_settings(settings, "a", numbered(5))
    result = run(instance, ["a", "b", "c"])
    assert loaded(result)["a"]["rows"] == 5
    assert (reads.call_count, opened.call_count) == (1, 1)


def test_only_a_load_that_brought_rows_is_a_materialization(
    instance: dg.DagsterInstance, settings: Settings
) -> None:  # audit E4
    for name in ("a", "b", "c"):
        publish_by_settings(settings, name, numbered(5))
    assert run(instance, ["a", "b", "c"]).success
    for name in ("a", "c"):
        publish_by_settings(settings, name, numbered(5))
    assert loaded(run(instance, ["a", "c"])).keys() == {"a", "c"}
    result = run(instance, ["a", "b", "c"])
    assert result.success
    assert not loaded(result)
    assert observed(result).keys() == {"a", "b", "c"}


def test_a_run_of_all_topics_loads_as_many_as_the_settings_allow(
    instance: dg.DagsterInstance, settings: Settings, tmp_path: Path
) -> None:  # audit E7
    file = tmp_path / "penstock.toml"
    file.write_text(f"topics_per_run = 2\n{file.read_text()}")
    for name in ("a", "b", "c", "d", "e"):
        publish_by_settings(settings, name, numbered(5))
    result = run(instance, ["a", "b", "c", "d", "e"], settings=Settings.load(file))
    assert result.success
    assert loaded(result).keys() == {"a", "b"}
    entries = [Waiting.parse(entry) for entry in storage_of(instance).waiting()]
    assert [(entry.topic, entry.run_id) for entry in entries] == [(name, result.run_id) for name in ("c", "d", "e")]


def test_a_topic_that_fails_again_in_the_same_way_has_failed_since_the_first_time(
    instance: dg.DagsterInstance, settings: Settings
) -> None:  # audit E5
    publish_by_settings(settings, "clicks", numbered(5))
    (Path(settings.lake) / "main").mkdir(parents=True)
    write_deltalake(str(Path(settings.lake) / "main" / "clicks"), pa.table({"other": [1]}))
    first, second = (failure(run(instance, ["clicks"])).metadata["failing"].value for _ in range(2))
    assert first == second == {"main/clicks": {"since_ms": first["main/clicks"]["since_ms"], "kinds": ["TableForeign"]}}
    assert first["main/clicks"]["since_ms"] > 0


def test_a_topic_that_dagster_has_seen_loaded_does_not_begin_again_in_another_lake(
    instance: dg.DagsterInstance, settings: Settings
) -> None:  # fault N17
    publish_by_settings(settings, "clicks", numbered(20))
    assert run(instance, ["clicks"]).success
    Path(settings.lake).rename(f"{settings.lake} elsewhere")
    error = observed(run(instance, ["clicks"]))["clicks"]["error"]
    assert error.startswith("TableLost: Dagster has a materialization of this topic, with version 1 of its table, but")
    assert loaded(run(instance, ["clicks"], since="earliest"))["clicks"]["rows"] == 20


def test_a_failed_topic_is_observed_with_its_error_and_the_others_are_loaded(
    instance: dg.DagsterInstance, settings: Settings
) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    result = run(instance, ["clicks", "gone", "Views"])
    assert loaded(result)["clicks"]["rows"] == 20
    errors = {key: metadata["error"].partition(":")[0] for key, metadata in observed(result).items()}
    assert errors == {"gone": "TopicUnknown", "Views": "TopicUnknown"}
    assert failure(result).description.startswith("2 of 3 topics were not loaded completely: ")


def test_the_schedule_requests_topics_with_new_records(instance: dg.DagsterInstance, settings: Settings) -> None:
    publish_by_settings(settings, "clicks", numbered(20))
    schedule = defs_of("clicks").resolve_schedule_def(LOAD)
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=datetime.now(UTC)) as context:
        (request,) = schedule.evaluate_tick(context).run_requests or []
    assert str(request.run_key).endswith("+00:00 clicks")
    assert request.asset_selection == [key("clicks")]


class Forbidden(dg.IOManager):
    """The IO manager of a project. Neither our loads nor our checks may use it."""

    def load_input(self, context: dg.InputContext) -> object:
        """Fail."""
        raise AssertionError(context.asset_key)

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Fail."""
        raise AssertionError(context.step_key, obj)


def test_runs_in_a_project_with_its_own_of_everything(instance: dg.DagsterInstance, settings: Settings) -> None:
    publish_by_settings(settings, "clicks", numbered(20))

    @dg.asset(ins={"table": dg.AssetIn(key=key("clicks"))})
    def row_count(table: DeltaTable, penstock: dg.ResourceParam[str]) -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(metadata={penstock: table.to_pyarrow_table().num_rows})

    project = dg.Definitions(
        assets=[row_count],
        executor=dg.multiprocess_executor,
        resources={"io_manager": Forbidden(), "penstock": "own", "kafka": "own", "lake": "own"},
    )
    second = defs_of("clicks", settings=settings, name="second", key_prefix=("second",))
    merged = dg.Definitions.merge(project, defs_of("clicks", settings=settings), second)
    job = merged.resolve_implicit_global_asset_job_def().get_subset(asset_selection={key("clicks"), row_count.key})
    result = job.execute_in_process(instance=instance)
    assert result.success
    assert loaded(result)["clicks"]["rows"] == loaded(result)["row_count"]["own"] == 20
    assert verdicts(result)["clicks"].keys() >= {"coverage", "freshness", "gaps"}


# fault E20
def test_a_run_that_fails_after_its_retries_gives_an_alert_and_the_next_one_does_not(
    instance: dg.DagsterInstance, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt leaves a last error in the lake, which is no proof of an alert."""
    publish_by_settings(settings, "clicks", numbered(20))
    command = ("sh", "-c", f"cat >> {tmp_path}/alerts; echo >> {tmp_path}/alerts")
    watched = Watched(keys=frozenset({key("clicks")}), ops=frozenset({f"penstock_{LOAD}"}))
    sensor = failed_runs_sensor("failed_runs", command, watched)

    def fail(*_: object) -> None:
        raise LakeUnavailable("the store does not answer")

    def fails() -> int:
        """Fail a run, and evaluate the sensor for it; returns how many alerts were sent until now."""
        with monkeypatch.context() as patch:
            patch.setattr("pipelines.load.load.reconcile", fail)
            result = run(instance, ["clicks"])
        assert len([event for event in result.all_events if event.is_step_up_for_retry]) == 2
        (event,) = [event for event in result.all_events if event.event_type == dg.DagsterEventType.RUN_FAILURE]
        context = dg.build_run_status_sensor_context(
            sensor_name="failed_runs",
            dagster_instance=instance,
            dagster_run=result.dagster_run,
            dagster_event=event,
        )
        sensor(context.for_run_failure())
        file = tmp_path / "alerts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    assert (fails(), fails()) == (1, 1)
    assert run(instance, ["clicks"]).success
    assert (fails(), fails()) == (2, 2)


# fault E26
@pytest.mark.parametrize("queued_s", [0.0, 0.3], ids=["before the wait", "during the wait"])
def test_a_run_does_not_wait_for_its_next_attempt_while_others_wait_for_its_place(
    queued_s: float, instance: dg.DagsterInstance, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry is down: without others the attempts wait 60, 120 and 240 s in the place of the run."""
    slow = settings.model_copy(update={"retries": Retries(most=3, wait_s=60)})
    monkeypatch.setattr("pipelines.defs.runs.run._POLL_S", 0.05)
    publish_by_settings(settings, "clicks", numbered(20))
    begun, waits = time.monotonic(), Mock(wraps=lambda count: count if time.monotonic() > begun + queued_s else 0)
    monkeypatch.setattr(dg.DagsterInstance, "get_runs_count", lambda *_: waits(1))

    def fail(*_: object) -> None:
        raise LakeUnavailable("the store does not answer")

    for attempt in range(4):
        with monkeypatch.context() as patch:
            patch.setattr("pipelines.load.load.reconcile", fail)
            result = run(instance, ["clicks"], settings=slow, hidden={ATTEMPT_TAG: str(attempt)} if attempt else {})
        assert time.monotonic() < begun + 50
        assert not [event for event in result.all_events if event.is_step_up_for_retry]
        entries = [Waiting.parse(entry) for entry in storage_of(instance).waiting()]
        failing = failure(result).metadata["failing"].value
        if attempt == 3:
            assert (entries, list(failing)) == ([], ["main/clicks"])
            return
        assert "so a run of its own tries again" in failure(result).description
        assert ([entry.topic for entry in entries], failing) == (["clicks"], {})
        [request] = tick(instance, PenstockResource(inline=slow)).run_requests
        assert (request.asset_selection, request.tags[ATTEMPT_TAG]) == ([key("clicks")], str(attempt + 1))
        storage_of(instance).forget_waiting(storage_of(instance).waiting())
