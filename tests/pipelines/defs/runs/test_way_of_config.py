"""How far the config of a run travels to the commit: a reader who follows it must not come back all the time."""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import dagster as dg
import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.defs.runs.run import LoadConfig, ScheduleRun
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.load.load import Loader
from pipelines.load.run import Run
from pipelines.plan.window import LoadWindow
from resources.settings.choices import Choices
from resources.settings.settings import PATH_VARIABLE, Settings
from tests.live import numbered
from tests.pipelines.defs.declared import run
from tests.publishing import publish_by_settings
from tests.syntax_trees import PACKAGES, ROOT

MAX_FILES, MAX_RETURNS = 25, 8
CARRIERS = (LoadConfig, LoadWindow, Choices, Loader, Run)
"""The config, what is made of it, and what carries that."""

pytestmark = pytest.mark.slow  # a whole run of Dagster


def product_file(code: CodeType, known: dict[CodeType, str]) -> str:
    """The file of a function of the product; empty for other functions."""
    if code not in known:
        path = Path(code.co_filename)
        place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path("other")
        known[code] = place.as_posix() if place.parts[0] in PACKAGES else ""
    return known[code]


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of the functions that a run calls with a carrier, one after the other, up to its commit."""
    files: list[str] = []
    known: dict[CodeType, str] = {}
    write = DeltaLakeTable.write.__code__

    def follow(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        file = product_file(code, known) if event == "call" else ""
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if file else ()
        if code is write or any(isinstance(frame.f_locals.get(name), CARRIERS) for name in names):
            files.append(file)
        if code is write:
            sys.setprofile(None)

    def followed(run: ScheduleRun, *arguments: Any) -> None:
        sys.setprofile(follow)
        load(run, *arguments)

    load = ScheduleRun.load
    monkeypatch.setattr(ScheduleRun, "load", followed)
    return files


def stays(visited: Sequence[str]) -> list[str]:
    """The files, each as often as the way comes into it from another one."""
    return [file for file, _ in groupby(visited)]


def test_the_config_of_a_run_reaches_the_commit_through_few_files(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visited: list[str]
) -> None:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker")) as broker:
        file = tmp_path / "penstock.toml"
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n')
        monkeypatch.setenv(PATH_VARIABLE, str(file))
        publish_by_settings(Settings.load(file), "clicks", numbered(20))
        config = {"ops": {"penstock_load__main__topics": {"config": {"since": "earliest", "on_corrupt": "skip"}}}}
        assert run(instance, ["clicks"], config=config).success
    way = stays(visited)
    assert (way[0], way[-1]) == ("pipelines/defs/runs/run.py", "pipelines/delta/delta_table.py")
    assert 10 < len(way) <= MAX_FILES, way
    assert len(way) - len(set(way)) <= MAX_RETURNS, way
