"""A secret of the lake is in no output, log or plan: not of commands, not of Dagster, not in tasks, not in the lake.

See faults X01, X02.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
import pytest
from click.testing import CliRunner

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from pipelines.fetch import fetch_runner as execute
from pipelines.fetch.fetch_task import FetchTask, to_json
from pipelines.ledger.slice_facts import SliceFacts
from resources.progress import Progress
from resources.settings.settings import PATH_VARIABLE, Settings
from resources.stores.lake import filesystem
from tests.fakes.object_store import ACCESS_KEY, ObjectStore, object_store
from tests.live import numbered
from tests.pipelines.defs.declared import run
from tests.publishing import publish_by_settings

SECRET = "canary-of-the-lake"
COMMANDS = (
    ("config", "show", "--json"),
    ("config", "check", "--json"),
    ("load", "clicks", "--json"),
    ("load", "clicks"),
    ("verify", "clicks", "--json"),
    ("status", "--json"),
    ("history", "clicks"),
    ("clean", "clicks", "--json"),
)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def settings(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The settings of a running cluster, whose lake is in the store. Its key and its secret are references."""
    references = {"aws_access_key_id": "env:LAKE_KEY", "aws_secret_access_key": f"file:{tmp_path}/secret"}
    lines = "".join(f"{name} = {value!r}\n" for name, value in {**store.options, **references}.items())
    file = tmp_path / "penstock.toml"
    (tmp_path / "secret").write_text(SECRET)
    monkeypatch.setenv("LAKE_KEY", ACCESS_KEY)
    monkeypatch.setenv(PATH_VARIABLE, str(file))
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker")) as broker:
        bootstrap = f"[clusters.main]\nbootstrap = '127.0.0.1:{broker.port}'\n"
        file.write_text(f"lake = '{store.root}-{tmp_path.name}'\n[lake_options]\n{lines}max_retries = '1'\n{bootstrap}")
        loaded = Settings.load(file)
        publish_by_settings(loaded, "clicks", numbered(20))
        yield loaded


def outputs(settings: Settings) -> str:
    """What all commands print, with the traces of their errors."""
    results = [CliRunner().invoke(main, ["--debug", *command]) for command in COMMANDS]
    return "".join(result.output + repr(result.exception) for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("works", [True, False])
def test_a_secret_of_the_lake_is_in_no_output(
    works: bool,
    settings: Settings,
    store: ObjectStore,
    instance: dg.DagsterInstance,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # faults X01, X02
    caplog.set_level(logging.DEBUG)
    tasks: list[str] = []
    fetch = execute.fetch_here

    def recorded(works: Sequence[FetchTask], on_progress: Progress, **options: Any) -> list[SliceFacts]:
        tasks.extend(map(to_json, works))
        return fetch(works, on_progress, **options)

    if not works:  # the store refuses each request
        monkeypatch.setenv("LAKE_KEY", "canary-of-nobody")
    with patch.object(execute, "fetch_here", recorded):
        printed = outputs(settings)
        publish_by_settings(settings, "clicks", numbered(5, start=20))
        result = run(instance, ["clicks"], settings=settings)
    assert result.success == works
    assert bool(tasks) == works
    events = "".join(map(str, instance.all_logs(result.run_id)))
    assert ("does not accept the credentials" in printed + events) == (not works)
    for text in (printed, events, caplog.text, *tasks, json.dumps(settings.model_dump(mode="json"))):
        assert "canary" not in text
    files = filesystem(settings.lake, {**store.options, "aws_secret_access_key": SECRET})
    for key in store.objects:
        folder, _, path = key.partition("/")
        if settings.lake.endswith(folder):
            with files.open_input_stream(path) as stream:
                assert b"canary" not in stream.read()
