"""Alerts: the user's command receives them for real runs, from sensors that are evaluated as by the daemon."""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator  # what the process of a run calls

from pipelines.defs.runs.run_liveness import WORKER_TAG, worker
from pipelines.defs.sensors.alerts import Watched, alert_sensors, failed_checks_sensor, failed_runs_sensor
from resources.settings.settings import SettingsError
from tests.pipelines.defs.declared import catalog


def writes(file: Path, code: int = 0) -> tuple[str, ...]:
    """A command that appends each alert to a file, as a line."""
    return ("sh", "-c", f"cat >> {file}; echo >> {file}; echo trouble >&2; exit {code}")


def alerts_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class World:
    """Two of our assets, an asset of somebody else, and the sensors that watch ours."""

    def __init__(self, instance: dg.DagsterInstance, command: Sequence[str]) -> None:
        self.instance = instance
        self.fails: Exception | None = None
        self.cursor: str | None = None
        ours = [dg.AssetKey("clicks"), dg.AssetKey("views")]
        watched = Watched(keys=frozenset(ours), ops=frozenset({"clicks", "views"}))
        self.failed_runs = failed_runs_sensor("failed_runs", command, watched)
        self.failed_checks = failed_checks_sensor("failed_checks", command, watched)

        def body() -> None:
            if self.fails:
                raise self.fails

        assets = [dg.asset(key=key)(body) for key in (*ours, dg.AssetKey("other"))]
        checks = [dg.AssetCheckSpec("coverage", asset=key) for key in (*ours, dg.AssetKey("other"))]
        jobs = [dg.define_asset_job(f"job_of_{key.path[-1]}", selection=[key]) for key in (*ours, dg.AssetKey("other"))]

        jobs.append(dg.define_asset_job("checks", selection=dg.AssetSelection.all_asset_checks()))

        @dg.multi_asset_check(specs=checks, can_subset=True)
        def evaluated_elsewhere(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
            yield from ()
            raise RuntimeError("nothing is evaluated here")

        self.defs = dg.Definitions(
            assets=assets, asset_checks=[evaluated_elsewhere], jobs=jobs, executor=dg.in_process_executor
        )

    def end(self, result: dg.ExecuteInProcessResult | SimpleNamespace) -> None:
        """Evaluate the sensor of failed runs for the end of a run, as the daemon does."""
        (event,) = [event for event in result.all_events if event.event_type == dg.DagsterEventType.RUN_FAILURE]
        context = dg.build_run_status_sensor_context(
            sensor_name="failed_runs",
            dagster_instance=self.instance,
            dagster_run=result.dagster_run,
            dagster_event=event,
        )
        self.failed_runs(context.for_run_failure())

    def run(self, job: str, *topics: str) -> dg.ExecuteInProcessResult:
        """Execute a run, then evaluate the sensor of failed runs for its end, as the daemon does."""
        result = self.defs.resolve_job_def(job).execute_in_process(
            instance=self.instance,
            asset_selection=[dg.AssetKey(topic) for topic in topics] or None,
            raise_on_error=False,
        )
        self.end(result)
        return result

    def report(self, topic: str, severity: dg.AssetCheckSeverity | None, sentence: str = "") -> None:
        """An evaluation of the check `coverage` of a topic. Without a severity it passes."""
        self.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=dg.AssetKey(topic),
                check_name="coverage",
                passed=severity is None,
                severity=severity or ERROR,
                description=sentence,
            )
        )

    def evaluate(self, topic: str, severity: dg.AssetCheckSeverity | None) -> None:
        """The same in a run, as by the schedules that watch topics and verify tables."""

        @dg.op
        def evaluate(context: dg.OpExecutionContext) -> None:
            evaluation = dg.AssetCheckEvaluation(
                asset_key=dg.AssetKey(topic),
                check_name="coverage",
                passed=severity is None,
                severity=severity or ERROR,
                metadata={},
            )
            context.log_event(evaluation)  # type: ignore[arg-type] # Dagster takes it in ops, too

        @dg.job
        def evaluates() -> None:
            evaluate()

        evaluates.execute_in_process(instance=self.instance)

    def tick(self) -> None:
        """Evaluate the sensor of checks once."""
        repository = self.defs.get_repository_def()
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor, repository_def=repository) as context:
            self.cursor = self.failed_checks.evaluate_tick(context).cursor


WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@pytest.mark.parametrize(
    ("job", "topics"), [("job_of_clicks", ()), ("__ASSET_JOB", ("clicks",)), ("__ASSET_JOB", ("other", "views"))]
)
def test_every_failed_run_over_our_assets_gives_an_alert_with_its_reason(
    instance: dg.DagsterInstance, tmp_path: Path, job: str, topics: tuple[str, ...]
) -> None:  # audit E2
    world = World(instance, writes(tmp_path / "alerts"))
    world.fails = dg.Failure("1 of 2 topics were not loaded completely", allow_retries=False)
    result = world.run(job, *topics)
    (alert,) = alerts_in(tmp_path / "alerts")
    assert alert["event"] == "run failed"
    assert (alert["run"], alert["job"]) == (result.run_id, job)
    assert alert["reason"] == "1 of 2 topics were not loaded completely"


@pytest.mark.parametrize(("job", "topics"), [("job_of_other", ()), ("__ASSET_JOB", ("other",))])
def test_a_failed_run_over_the_assets_of_others_gives_no_alert(
    instance: dg.DagsterInstance, tmp_path: Path, job: str, topics: tuple[str, ...]
) -> None:
    world = World(instance, writes(tmp_path / "alerts"))
    world.fails = dg.Failure("it is not our failure", allow_retries=False)
    world.run(job, *topics)
    assert alerts_in(tmp_path / "alerts") == []


def test_the_reason_is_the_sentence_of_the_error(instance: dg.DagsterInstance, tmp_path: Path) -> None:  # audit E8
    world = World(instance, writes(tmp_path / "alerts"))
    world.fails = SettingsError("there is no settings file /etc/penstock.toml")
    world.run("job_of_clicks")
    (alert,) = alerts_in(tmp_path / "alerts")
    assert alert["reason"].endswith("SettingsError: there is no settings file /etc/penstock.toml (PS-101)")


# fault E20
@pytest.mark.slow
def test_topics_that_fail_again_in_the_same_way_give_one_alert(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:  # audit E5
    world = World(instance, writes(tmp_path / "alerts"))
    lost = {"since_ms": 7, "kinds": ["TableLost"]}
    for reason, failing in (
        ("one", {"main/clicks": lost}),
        ("same", {"main/clicks": lost}),
        ("two", {"main/clicks": lost, "main/views": lost}),
        ("another kind", {"main/clicks": {"since_ms": 7, "kinds": ["TableLost", "LogTorn"]}}),
        ("a kind less", {"main/clicks": lost}),
        ("it had passed", {"main/clicks": {"since_ms": 8, "kinds": ["TableLost"]}}),
        ("unknown", {"main/clicks": {"since_ms": 0, "kinds": []}}),
        ("still unknown", {"main/clicks": {"since_ms": 0, "kinds": []}}),
    ):
        metadata = {"errors": dg.MetadataValue.json(failing), "failing": dg.MetadataValue.json(failing)}
        world.fails = dg.Failure(reason, metadata=metadata, allow_retries=False)
        world.run("job_of_clicks")
    expected = ["one", "two", "another kind", "it had passed", "unknown", "still unknown"]
    assert [alert["reason"] for alert in alerts_in(tmp_path / "alerts")] == expected


# fault E20
@pytest.mark.slow
def test_an_alert_that_could_not_be_sent_is_sent_for_the_next_run(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    failing = {"main/clicks": {"since_ms": 7, "kinds": ["TableLost"]}}
    for code in (3, 0, 0):
        world = World(instance, writes(tmp_path / f"alerts {code}".replace(" ", "_"), code))
        world.fails = dg.Failure("lost", metadata={"failing": dg.MetadataValue.json(failing)}, allow_retries=False)
        with suppress(dg.DagsterError, dg.Failure):
            world.run("job_of_clicks")
    assert len(alerts_in(tmp_path / "alerts_0")) == 1


# fault F17
@pytest.mark.parametrize(
    ("tag", "alerts"),
    [(worker(), 0), (f"{socket.gethostname()}/999999999/1.000", 1), ("", 1)],
    ids=["this process", "a process that ended", "no process"],
)
def test_a_run_that_a_second_daemon_started_again_gives_no_alert_while_it_continues(
    tag: str, alerts: int, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """Without run monitoring, Dagster itself lets the second process mark the run as failed."""
    world = World(instance, writes(tmp_path / "alerts"))
    job = world.defs.resolve_job_def("job_of_clicks")
    keys = frozenset({dg.AssetKey("clicks")})
    started = instance.create_run_for_job(
        job, tags={WORKER_TAG: tag}, status=dg.DagsterRunStatus.STARTED, asset_selection=keys
    )
    events = list(execute_run_iterator(InMemoryJob(job), started, instance))
    run = instance.get_run_by_id(started.run_id)
    assert run is not None
    assert run.status == dg.DagsterRunStatus.FAILURE
    world.end(SimpleNamespace(all_events=events, dagster_run=run))
    assert len(alerts_in(tmp_path / "alerts")) == alerts


def test_a_check_gives_an_alert_when_it_fails_and_again_only_when_its_severity_changes(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    world = World(instance, writes(tmp_path / "alerts"))
    for severity in (WARN, WARN, ERROR, ERROR, None, WARN):
        world.report("clicks", severity, "not proven: a file is missing")
        world.tick()
    alerts = alerts_in(tmp_path / "alerts")
    assert [alert["severity"] for alert in alerts] == ["WARN", "ERROR", "WARN"]
    assert alerts[0]["event"] == "check failed"
    assert (alerts[0]["asset"], alerts[0]["check"]) == ("clicks", "coverage")
    assert alerts[0]["reason"] == "not proven: a file is missing"


def test_no_other_evaluation_hides_a_failed_proof(instance: dg.DagsterInstance, tmp_path: Path) -> None:  # audit E1
    world = World(instance, writes(tmp_path / "alerts"))
    world.report("clicks", None)
    world.report("clicks", ERROR, "not proven: a file is missing")
    world.report("views", None)
    world.report("views", ERROR, "not proven: a row is there twice")
    world.report("other", ERROR, "somebody else's")
    world.report("clicks", ERROR, "not proven: a file is missing")  # before the sensor has seen the first one
    world.tick()
    world.tick()
    assert [alert["asset"] for alert in alerts_in(tmp_path / "alerts")] == ["clicks", "views"]


# fault E16
@pytest.mark.slow
@pytest.mark.parametrize("storage", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_checks_give_alerts_on_every_storage_at_every_tick(
    storage: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The default storage has a database for each run; the one for production is shared by all."""
    overrides: dict[str, Any] = {"telemetry": {"enabled": False}}
    if storage == "postgres":
        url = request.getfixturevalue("postgres_dsn").replace("postgresql:", "postgresql+psycopg2:")
        overrides["storage"] = {"postgres": {"postgres_url": url}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        assert instance.event_log_storage.is_run_sharded == (storage == "sqlite")
        world = World(instance, writes(tmp_path / "alerts"))
        for severity, alerts in ((None, 0), (WARN, 1), (ERROR, 2), (ERROR, 2), (None, 2), (ERROR, 3)):
            world.evaluate("clicks", severity)
            world.tick()
            assert len(alerts_in(tmp_path / "alerts")) == alerts
        assert {alert["job"] for alert in alerts_in(tmp_path / "alerts")} == {"evaluates"}


# fault E16
def test_a_run_that_never_evaluates_its_checks_hides_no_result(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    world = World(instance, writes(tmp_path / "alerts"))
    world.report("clicks", ERROR, "not proven: a file is missing")
    assert not world.defs.resolve_job_def("checks").execute_in_process(instance=instance, raise_on_error=False).success
    world.tick()
    assert [alert["asset"] for alert in alerts_in(tmp_path / "alerts")] == ["clicks"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("sh", "-c", "echo trouble >&2; exit 3"), "the command of alerts.command ended with exit code 3: trouble"),
        (("/nowhere/to/be/found",), "the command of alerts.command could not be run: no such file"),
    ],
)
def test_a_command_that_fails_fails_the_tick_of_its_sensor(
    instance: dg.DagsterInstance, command: tuple[str, ...], reason: str
) -> None:
    world = World(instance, command)
    world.fails = dg.Failure("it fails")
    with pytest.raises(Exception, match=reason):
        world.run("job_of_clicks")


def test_without_a_command_there_are_no_sensors() -> None:
    assert alert_sensors(catalog("clicks"), [], []) == []
