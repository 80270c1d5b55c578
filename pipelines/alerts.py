"""Alerts: a command of the user's is told of runs that fail, and of checks that did pass and do not any more."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

_TIMEOUT_S = 60


def alert_sensors(command: Sequence[str], jobs: Sequence[dg.JobDefinition | Any]) -> Iterator[dg.SensorDefinition]:
    """The sensors that watch `jobs`; none without a command."""
    if command:
        yield _failed_runs(command, jobs)
        yield _failed_checks(command, jobs)


def _failed_runs(command: Sequence[str], jobs: Sequence[Any]) -> dg.SensorDefinition:
    @dg.run_failure_sensor(
        name="alert_failed_runs",
        monitored_jobs=list(jobs),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells the settings' alerts.command of each run that fails.",
    )
    def failed_runs(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        steps = [event.step_failure_data for event in context.get_step_failure_events()]
        reasons = [step.user_failure_data.description for step in steps if step.user_failure_data]
        told = {"event": "run failed", "run": run.run_id, "job": run.job_name, "tags": dict(run.tags)}
        _tell(command, {**told, "reason": (reasons or [context.failure_event.message])[0]})

    return failed_runs


def _failed_checks(command: Sequence[str], jobs: Sequence[Any]) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name="alert_failed_checks",
        monitored_jobs=list(jobs),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells the settings' alerts.command of each check that no longer passes.",
    )
    def failed_checks(context: dg.RunStatusSensorContext) -> None:
        run = context.dagster_run
        records = context.instance.get_records_for_run(
            run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
        ).records
        for record in records:
            event = record.event_log_entry.dagster_event
            assert event is not None
            one = event.asset_check_evaluation_data
            if not one.passed and not _known(context.instance, one):
                told = {"event": "check failed", "run": run.run_id, "job": run.job_name, "check": one.check_name}
                asset = one.asset_key.to_user_string()
                _tell(
                    command, {**told, "asset": asset, "severity": one.severity.value, "reason": one.description or ""}
                )

    return failed_checks


def _known(instance: dg.DagsterInstance, one: dg.AssetCheckEvaluation) -> bool:
    """Whether the evaluation before had failed as badly: that was told already."""
    key = dg.AssetCheckKey(one.asset_key, one.check_name)
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=2)
    before = [record.event.dagster_event for record in history[1:] if record.event]
    last = before[0].asset_check_evaluation_data if before and before[0] else None
    return last is not None and not last.passed and last.severity == one.severity


def _tell(command: Sequence[str], told: Mapping[str, Any]) -> None:
    """Run the command with what happened.

    Raises:
        dagster.Failure: it cannot be run, or ends with another code than 0; the sensor's tick shows that.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the command is the user's own, from the settings
            command, input=json.dumps(told).encode(), capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise dg.Failure(f"alerts.command: {error}") from error
    if done.returncode:
        raise dg.Failure(f"alerts.command ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
