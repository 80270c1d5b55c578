"""Hundreds and a thousand topics: definitions, ticks and events belong only to the topics that are concerned.

An event costs Dagster 12 to 28 ms, so the number of events decides how long runs over many topics take.
"""

from collections.abc import Sequence

import dagster as dg
import pytest

from pipelines.defs.runs.run import ScheduleRun
from pipelines.reports.outcome import TopicLoad
from tests.pipelines.defs.declared import LOAD, FixedTopics, defs_of, key, storage_of
from tests.thorough import first

# The table of a load in this test is not there, so the proof of each topic fails, which is one of its events.
_EVENTS_PER_RUN, _EVENTS_PER_TOPIC = 12, 5
_CHECKS = 6


def load_nothing(run: ScheduleRun, _config: object, topics: Sequence[str]) -> None:
    """Loads that bring a row each, without a broker and a table."""
    run.loads |= {topic: TopicLoad(topic=topic, table="t", rows=1, version=1) for topic in topics}


@pytest.mark.slow
@pytest.mark.parametrize("count", first(1, [300, 1000]))
def test_a_run_has_few_events_and_only_about_its_own_topics(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(ScheduleRun, "load", load_nothing)
    monkeypatch.setattr(ScheduleRun, "ask_statuses_after", lambda _run: None)
    monkeypatch.setattr(ScheduleRun, "facts", lambda _run, _topic: None)
    names = [f"topic-{number:04}" for number in range(count)]
    storage_of(instance).add(names)
    penstock = FixedTopics(clusters={"main": names}, per_run=100)
    defs = defs_of(*names, source=penstock, settings=penstock.settings())
    assert len(defs.get_repository_def().asset_graph.asset_check_keys) == _CHECKS * count
    with dg.build_sensor_context(instance=instance, definitions=defs) as context:
        result = defs.resolve_sensor_def("new_topics__main").evaluate_tick(context)
    assert result.skip_message == f"no new topic; topics in the cluster: {count}"
    for size in (3, count // 10):
        keys = {key(name) for name in names[:size]}
        job = defs.resolve_job_def(LOAD).get_subset(asset_selection=keys, asset_check_selection=set())
        run = job.execute_in_process(instance=instance)
        assert run.success
        assert len(instance.all_logs(run.run_id)) <= _EVENTS_PER_RUN + _EVENTS_PER_TOPIC * size
        newest = instance.event_log_storage.get_latest_materialization_events([key(name) for name in names])
        assert {asset for asset, event in newest.items() if event is not None} == keys
