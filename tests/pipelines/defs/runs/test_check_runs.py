"""A run of checks reads several tables at a time, and judges each by its own proof."""

import shutil
from pathlib import Path
from random import Random
from threading import Barrier

import dagster as dg
import pytest

from pipelines.defs.catalog.catalog import TopicSchedule
from pipelines.defs.catalog.checks import COVERAGE, GAPS
from pipelines.defs.runs import check_runs
from pipelines.defs.runs.check_runs import CheckRun
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.verify.topic_tables import verify_topic
from pipelines.verify.verify import Proof
from resources.penstock import PenstockResource
from resources.settings.settings import ClusterSettings, Settings
from tests.pipelines.defs.declared import catalog
from tests.pipelines.increments.keyed_tables import KeyedHistory


def run_of(history: KeyedHistory, instance: dg.DagsterInstance) -> CheckRun:
    """The checks of three topics, of which `new` has no table."""
    settings = Settings(lake=history.lake.root, clusters={"main": ClusterSettings(bootstrap="127.0.0.1:1")})
    source = PenstockResource(inline=settings)
    topics = catalog("clicks", "views", "new", settings=settings, source=source)
    schedule = TopicSchedule(catalog=topics, cluster="main", name="topics", tables={}, specs={})
    return CheckRun(instance=instance, penstock=source, schedule=schedule)


def test_a_topic_that_was_loaded_and_has_no_table_is_not_proven(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:  # fault E07
    history = KeyedHistory(tmp_path / "lake", Random(1))
    history.load(("a", "1"))
    run = run_of(history, instance)
    instance.report_runless_asset_event(dg.AssetMaterialization(run.schedule.key("clicks")))
    wanted = {topic: [COVERAGE] for topic in ("clicks", "new")}
    assert [(topic, verdict.state) for (topic, _), verdict in run.results(wanted).items()] == [("clicks", "PASSED")]
    shutil.rmtree(history.lake.root)
    assert [(topic, verdict.state) for (topic, _), verdict in run.results(wanted).items()] == [("clicks", "ERROR")]


def test_several_tables_are_proven_at_a_time(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = KeyedHistory(tmp_path / "lake", Random(1))
    history.load(("a", "1"))
    views = Path(history.uri).with_name("views")
    shutil.copytree(history.uri, views)
    next(views.rglob("*.parquet")).unlink()
    both_begun = Barrier(2)

    def verify_both(table: DeltaLakeTable) -> Proof:
        both_begun.wait(timeout=60)
        return verify_topic(table)

    monkeypatch.setattr(check_runs, "verify_topic", verify_both)
    run = run_of(history, instance)
    verdicts = run.results({topic: [COVERAGE] for topic in ("clicks", "views", "new")})
    assert {topic: verdict.state for (topic, _), verdict in verdicts.items()} == {"clicks": "PASSED", "views": "ERROR"}
    monkeypatch.undo()
    assert run.results({"clicks": [GAPS]})["clicks", GAPS].state == "PASSED"
