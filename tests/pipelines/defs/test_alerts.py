"""Alerts: the user's command receives them for real runs, from sensors that are evaluated as by the daemon."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.alerts import alert_sensors


def writes(file: Path, code: int = 0) -> tuple[str, ...]:
    """A command that appends each alert to a file, as a line."""
    return ("sh", "-c", f"cat >> {file}; echo >> {file}; echo trouble >&2; exit {code}")


def alerts_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class World:
    """An asset with a check, a job over both, and the sensors that watch it."""

    def __init__(self, instance: dg.DagsterInstance, command: Sequence[str]) -> None:
        self.instance = instance
        self.fails: str | None = None
        self.verdict: Mapping[str, Any] = {"passed": True}

        @dg.asset
        def tables() -> None:
            if self.fails:
                raise dg.Failure(self.fails, allow_retries=False)

        @dg.asset_check(asset=tables)
        def lag() -> dg.AssetCheckResult:
            return dg.AssetCheckResult(**self.verdict)

        job = dg.define_asset_job("load", selection=dg.AssetSelection.assets(tables))
        self.failed_runs, self.failed_checks = alert_sensors(command, [job])
        self.defs = dg.Definitions(assets=[tables], asset_checks=[lag], jobs=[job], executor=dg.in_process_executor)

    def run(self) -> dg.ExecuteInProcessResult:
        """Execute a run, then evaluate the sensors for its end."""
        job = self.defs.resolve_job_def("load")
        result = job.execute_in_process(instance=self.instance, raise_on_error=False)
        failed = not result.success
        kind = dg.DagsterEventType.RUN_FAILURE if failed else dg.DagsterEventType.RUN_SUCCESS
        (event,) = [event for event in result.all_events if event.event_type == kind]
        sensor = self.failed_runs if failed else self.failed_checks
        context = dg.build_run_status_sensor_context(
            sensor_name=sensor.name, dagster_instance=self.instance, dagster_run=result.dagster_run, dagster_event=event
        )
        sensor(context.for_run_failure() if failed else context)
        return result


def test_a_failed_run_gives_an_alert_with_its_reason(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    world = World(instance, writes(tmp_path / "alerts"))
    world.run()
    assert alerts_in(tmp_path / "alerts") == []
    world.fails = "1 of 2 topics were not loaded completely"
    result = world.run()
    (alert,) = alerts_in(tmp_path / "alerts")
    assert alert["event"] == "run failed"
    assert (alert["run"], alert["job"]) == (result.run_id, "load")
    assert alert["reason"] == "1 of 2 topics were not loaded completely"


def test_a_check_gives_an_alert_when_it_fails_and_again_only_when_it_gets_worse(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    world = World(instance, writes(tmp_path / "alerts"))
    warn = {"passed": False, "severity": dg.AssetCheckSeverity.WARN, "description": "clicks: late"}
    error = {**warn, "severity": dg.AssetCheckSeverity.ERROR}
    for verdict in (warn, warn, error, error, {"passed": True}, warn):
        world.verdict = verdict
        world.run()
    alerts = alerts_in(tmp_path / "alerts")
    assert [alert["severity"] for alert in alerts] == ["WARN", "ERROR", "WARN"]
    assert alerts[0]["event"] == "check failed"
    assert (alerts[0]["asset"], alerts[0]["check"], alerts[0]["reason"]) == ("tables", "lag", "clicks: late")


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
    world.fails = "it fails"
    with pytest.raises(Exception, match=reason):
        world.run()


def test_without_a_command_there_are_no_sensors() -> None:
    assert alert_sensors((), []) == []
