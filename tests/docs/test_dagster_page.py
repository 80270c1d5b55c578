"""The page on Dagster names everything that Penstock creates in Dagster, and nothing else."""

import re
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.workspace.load import location_origins_from_yaml_paths

from pipelines.defs.build import definitions_of
from pipelines.defs.catalog.catalog import Catalog
from pipelines.defs.catalog.known_topics import KnownTopics
from pipelines.defs.runs.replay_job import ReplayConfig
from pipelines.defs.runs.run import LoadConfig
from resources.penstock import PenstockResource
from resources.settings.settings import Settings
from tests.docs.pages import ROOT, code, run_blocks

PAGE = ROOT / "docs" / "dagster.md"
CLUSTER, SCHEDULE, TOPIC, TABLE = "old", "topics", "clicks", "orders"
COMPLETE = {"event_time": "timestamp", "complete": "hourly", "complete_since": "2026-01-01"}


@pytest.fixture(scope="module")
def dagster_names() -> set[str]:
    """The names of all jobs, sensors, schedules, checks, assets and pools in Dagster for one cluster and one topic."""
    settings = {
        "lake": "lake",
        "clusters": {CLUSTER: {"bootstrap": "127.0.0.1:1"}},
        "alerts": {"command": ["true"]},
        "limits": {"lag": 5},
        "topics": {
            TOPIC: {
                "format": "json",
                "state": {"key": "key"},
                "tables": {"by": "header:t", "names": {"o": TABLE}},
                **COMPLETE,
            },
            f"{TOPIC}/{TABLE}": {"format": "json"},
        },
    }
    bound = Settings.model_validate(settings)
    known = {CLUSTER: KnownTopics(names=(TOPIC,))}
    catalog = Catalog(source=PenstockResource(inline=bound), settings=bound, known=known)
    repository = definitions_of(catalog).get_repository_def()
    jobs = {name for name in repository.job_names if not name.startswith("__")}
    sensors = {sensor.name for sensor in repository.sensor_defs}
    schedules = {schedule.name for schedule in repository.schedule_defs}
    checks = {key.name for key in repository.asset_graph.asset_check_keys}
    assets = {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()}
    return {*jobs, *sensors, *schedules, *checks, *assets, f"kafka_{CLUSTER}", f"kafka_{CLUSTER}_watch"}


def names_on_page() -> set[str]:
    """The code in backquotes of the page, with the placeholders replaced by names."""
    return {_filled(name) for name in code(PAGE)}


def _filled(name: str) -> str:
    values = {"<cluster>": CLUSTER, "<schedule>": SCHEDULE, "<topic>": TOPIC, "<table>": TABLE}
    return re.sub("<[a-z]+>", lambda placeholder: values.get(placeholder[0], placeholder[0]), name)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_everything_in_dagster_is_on_the_page(dagster_names: set[str]) -> None:
    assert dagster_names - names_on_page() == set()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_all_names_on_the_page_exist_in_dagster(dagster_names: set[str]) -> None:
    patterns = {_filled(name) for name in code(PAGE) if "<cluster>" in name}
    assert patterns - dagster_names == set()


def test_all_fields_of_a_runs_config_are_on_the_page() -> None:
    fields = {*LoadConfig.model_fields, *ReplayConfig.model_fields}
    assert fields - names_on_page() == set()


def yaml_of_page(first_key: str) -> str:
    """The block of YAML that begins with a key."""
    [text] = [block.text for block in run_blocks(PAGE, "yaml") if block.text.startswith(f"{first_key}:")]
    return text


def test_dagster_accepts_the_instance(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(yaml_of_page("telemetry"))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 2


def test_the_workspace_names_the_code_server(tmp_path: Path) -> None:
    """It has the host, the port and the name of the command that starts the code server."""
    text = yaml_of_page("load_from")
    (tmp_path / "workspace.yaml").write_text(text)
    [origin] = location_origins_from_yaml_paths([str(tmp_path / "workspace.yaml")])
    [server] = (location["grpc_server"] for location in yaml.safe_load(text)["load_from"])
    [command] = [
        command for block in run_blocks(PAGE, "sh") for command in block.commands() if "code-server start" in command
    ]
    assert origin.location_name == server["location_name"]
    assert f"--host {server['host']} --port {server['port']} --location-name {origin.location_name}" in command
