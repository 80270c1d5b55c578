"""Alerts: sensors that run the user's command when a run fails, or when a check fails that passed before."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from kafka_io.errors import system_reason

_TIMEOUT_S = 60


def alert_sensors(command: Sequence[str], jobs: Sequence[Any]) -> list[dg.SensorDefinition]:
    """The sensors that watch `jobs`. Without a command there are no sensors."""
    if not command:
        return []
    watched: dict[str, Any] = {"monitored_jobs": list(jobs), "default_status": dg.DefaultSensorStatus.RUNNING}

    @dg.run_failure_sensor(
        name="alert_failed_runs",
        description="Runs the command of the setting alerts.command for each run that fails.",
        **watched,
    )
    def failed_runs(context: dg.RunFailureSensorContext) -> None:
        failures = [event.step_failure_data.user_failure_data for event in context.get_step_failure_events()]
        reasons = [failure.description for failure in failures if failure]
        run = context.dagster_run
        alert = {**_alert("run failed", run), "tags": dict(run.tags)}
        _run_command(command, {**alert, "reason": (reasons or [context.failure_event.message])[0]})

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name="alert_failed_checks",
        description="Runs the command of the setting alerts.command for each check that no longer passes.",
        **watched,
    )
    def failed_checks(context: dg.RunStatusSensorContext) -> None:
        for evaluation in _evaluations(context.instance, context.dagster_run.run_id):
            if evaluation.passed or _failed_before(context.instance, evaluation):
                continue
            alert = {
                **_alert("check failed", context.dagster_run),
                "check": evaluation.check_name,
                "asset": evaluation.asset_key.to_user_string(),
                "severity": evaluation.severity.value,
                "reason": evaluation.description or "",
            }
            _run_command(command, alert)

    return [failed_runs, failed_checks]


def _alert(event: str, run: dg.DagsterRun) -> dict[str, Any]:
    return {"event": event, "run": run.run_id, "job": run.job_name}


def _evaluations(instance: dg.DagsterInstance, run_id: str) -> Iterator[dg.AssetCheckEvaluation]:
    """The check evaluations of one run."""
    kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    for record in instance.get_records_for_run(run_id, of_type=kind).records:
        event = record.event_log_entry.dagster_event
        assert event is not None
        yield event.asset_check_evaluation_data


def _failed_before(instance: dg.DagsterInstance, evaluation: dg.AssetCheckEvaluation) -> bool:
    """Whether the evaluation before this one failed with the same severity: its alert was sent then."""
    key = dg.AssetCheckKey(evaluation.asset_key, evaluation.check_name)
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=2)
    events = [record.event.dagster_event for record in history[1:] if record.event]
    previous = events[0].asset_check_evaluation_data if events and events[0] else None
    return previous is not None and not previous.passed and previous.severity == evaluation.severity


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
