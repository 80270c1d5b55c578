"""Alerts: sensors that run the user's command when a run over our assets fails, and when a check no longer passes."""

import json
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import msgspec

from kafka_io.errors import system_reason
from pipelines.defs.catalog.catalog import Catalog, TopicSchedule
from pipelines.defs.runs.run import FAILING
from pipelines.defs.runs.run_liveness import WORKER_TAG, is_gone
from pipelines.defs.sensors.alerted_failures import AlertedFailures, failures_in
from pipelines.defs.sensors.sensor_cursors import cursor_from
from resources.explanations.codes import UNEXPECTED, code_of_kind, coded

_TIMEOUT_S = 60
_REASON_TAG = "dagster/failure_reason"
"""The tag in which Dagster stores why it marked a run as failed."""
_PLANNED = 10
"""How many runs that have planned a check, and did not get to it, are passed over to find its newest result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What alerts are about.

    Args:
        keys: the assets of these definitions.
        ops: the names of their ops.
    """

    keys: Collection[dg.AssetKey]
    ops: Collection[str]

    def touches(self, instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
        """Whether a run has to do with these assets, whoever launched it and whatever its job is."""
        if run.asset_selection:
            return not run.asset_selection.isdisjoint(self.keys)
        if run.execution_plan_snapshot_id is None:
            return False
        plan = instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id)
        return not set(plan.step_keys_to_execute).isdisjoint(self.ops)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStates:
    """The cursor of the sensor of checks: for which of them it has sent an alert.

    Args:
        failing: the severity of each check that does not pass, by its name.
    """

    failing: Mapping[str, str] = field(default_factory=dict)


def alert_sensors(
    catalog: Catalog, schedules: Sequence[TopicSchedule], ops: Sequence[str]
) -> list[dg.SensorDefinition]:
    """The sensors that watch the assets of all schedules. Without a command there are no sensors."""
    command = catalog.settings.alerts.command
    if not command:
        return []
    watched = Watched(keys=frozenset(key for schedule in schedules for key in schedule.topics), ops=frozenset(ops))
    return [
        failed_runs_sensor(f"alert_failed_runs{catalog.suffix}", command, watched),
        failed_checks_sensor(f"alert_failed_checks{catalog.suffix}", command, watched),
    ]


def failed_runs_sensor(name: str, command: Sequence[str], watched: Watched) -> dg.SensorDefinition:
    """The sensor that alerts of failed runs. A topic that still fails in the same way does not alert again."""

    @dg.run_failure_sensor(
        name=name,
        description="Runs the command of the setting alerts.command for each run over topics that fails, unless "
        "there was an alert of the same topics, which have failed in the same way since.",
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def failed_runs(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        if not watched.touches(context.instance, run) or _continues(run):
            return
        failures = [event.step_failure_data for event in context.get_step_failure_events()]
        details = [failure.user_failure_data for failure in failures if failure.user_failure_data]
        failing = failures_in([detail.metadata for detail in details], FAILING)
        alerted = AlertedFailures.stored(context.instance, name)
        if failing is not None and alerted.contain(failing):  # a topic that is tried again is not failing yet
            return
        reasons = [detail.description for detail in details if detail.description]
        reasons += [_sentence(failure.error) for failure in failures if failure.error]
        reason = next(iter(reasons), context.failure_event.message)
        _run_command(command, {**_alert("run failed", run), "tags": dict(run.tags), "reason": reason})
        if failing:
            alerted.including(failing).store(context.instance, name)

    return failed_runs


def _continues(run: dg.DagsterRun) -> bool:
    """Whether the run is marked as failed and continues: two daemons use one storage, and both launched it (fault F17).

    Without run monitoring, the second process of a run marks it as failed, and the first one ends it later. If that
    fails, there is another failure, which gives an alert.
    """
    worker = run.tags.get(WORKER_TAG)
    return run.tags.get(_REASON_TAG) == "RUN_WORKER_RESTART" and bool(worker) and not is_gone(str(worker))


def _sentence(error: Any) -> str:
    """The sentence of the error that ended a step, without Dagster's words around it, with the code of our errors."""
    while error.cause:
        error = error.cause
    code = code_of_kind(str(error.cls_name))
    return coded(str(error.message).strip(), None if code == UNEXPECTED else code)


def failed_checks_sensor(name: str, command: Sequence[str], watched: Watched) -> dg.SensorDefinition:
    """The sensor that alerts of checks: once when a check of a table stops passing, and once when it gets worse.

    It compares the newest result of each check with the one of its last tick, whichever run reported it. It does not
    read events in their order: the default storage of Dagster has a database for each run, and so no order of events
    (fault E16).
    """

    @dg.sensor(
        name=name,
        description="Runs the command of the setting alerts.command for each check that no longer passes.",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def failed_checks(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        assert context.repository_def is not None
        keys = [key for key in context.repository_def.asset_graph.asset_check_keys if key.asset_key in watched.keys]
        before, failing, alerts = cursor_from(context.cursor, CheckStates).failing, dict[str, str](), 0
        for run_id, evaluation in _newest_evaluations(context.instance, keys):
            if evaluation.passed:
                continue
            check = f"{evaluation.asset_key.to_user_string()}:{evaluation.check_name}"
            failing[check] = evaluation.severity.value
            if before.get(check) != failing[check]:
                _run_command(command, _check_alert(context.instance, run_id, evaluation))
                alerts += 1
        cursor = msgspec.json.encode(CheckStates(failing=failing)).decode()
        reason = f"alerts: {alerts}; checks that do not pass: {len(failing)}"
        return dg.SensorResult(skip_reason=reason, cursor=cursor)

    return failed_checks


def _newest_evaluations(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]
) -> Iterator[tuple[str, dg.AssetCheckEvaluation]]:
    """The newest evaluation of each check that has one, and its run."""
    storage = instance.event_log_storage
    for key, newest in sorted(storage.get_latest_asset_check_execution_by_key(keys).items()):
        # A run plans its checks before it evaluates them, and perhaps never does so.
        is_planned = not isinstance(newest.evaluation, dg.AssetCheckEvaluation)
        records = storage.get_asset_check_execution_history(key, limit=_PLANNED) if is_planned else [newest]
        for record in records:
            if isinstance(record.evaluation, dg.AssetCheckEvaluation):
                yield record.run_id, record.evaluation
                break


def _check_alert(instance: dg.DagsterInstance, run_id: str, evaluation: dg.AssetCheckEvaluation) -> dict[str, Any]:
    run = instance.get_run_by_id(run_id) if run_id else None
    alert = _alert("check failed", run) if run else {"event": "check failed", "run": "", "job": ""}
    return {
        **alert,
        "check": evaluation.check_name,
        "asset": evaluation.asset_key.to_user_string(),
        "severity": evaluation.severity.value,
        "reason": evaluation.description or "",
    }


def _alert(event: str, run: dg.DagsterRun) -> dict[str, Any]:
    return {"event": event, "run": run.run_id, "job": run.job_name}


def _run_command(command: Sequence[str], alert: Mapping[str, Any]) -> None:
    """Run the user's command with the alert as JSON on its standard input.

    Raises:
        dagster.Failure: the command cannot be run, or its exit code is not 0. The sensor's tick shows the reason.
    """
    try:
        process = subprocess.run(  # noqa: S603 - the command is the user's own, from the settings
            command, input=json.dumps(alert).encode(), capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise dg.Failure(f"the command of alerts.command did not end within {_TIMEOUT_S} s") from error
    except OSError as error:
        raise dg.Failure(f"the command of alerts.command could not be run: {system_reason(error)}") from error
    if process.returncode:
        output = process.stderr.decode(errors="replace")[-500:]
        raise dg.Failure(f"the command of alerts.command ended with exit code {process.returncode}: {output}")
