"""Hundreds and a thousand topics: what definitions, ticks and events cost."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import pytest

from pipelines.defs.run import GroupRun
from pipelines.loading.outcome import TopicLoad
from tests.pipelines.defs.declared import LOAD, FixedTopics, defs_of, key, registry_of

MAX_CPU_S = {"code location": 10.0, "quiet tick": 2.0, "run of 3": 6.0, "run of 100": 20.0}
"""Limits of CPU time, which does not depend on what else the machine does. They are generous: a machine may be slow."""


@contextmanager
def limited(step: str, count: int, record: pytest.FixtureRequest) -> Iterator[None]:
    """Measure a step, print its CPU time, and hold it against its limit."""
    began = time.process_time()
    yield
    seconds = time.process_time() - began
    record.node.user_properties.append((f"{step}, {count} topics", round(seconds, 2)))
    print(f"{step} with {count} topics: {seconds:.2f} s of CPU time")  # noqa: T201 - pytest -s shows the figures
    assert seconds < MAX_CPU_S[step]


def load_nothing(run: GroupRun, _config: object, topics: list[str]) -> None:
    """Loads that bring a row each, without a broker and a table."""
    run.loads |= {topic: TopicLoad(topic=topic, table="t", rows=1, version=1) for topic in topics}


@pytest.mark.parametrize("count", [300, 1000])
def test_many_topics_cost_little(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, count: int
) -> None:
    monkeypatch.setattr(GroupRun, "load", load_nothing)
    monkeypatch.setattr(GroupRun, "ask_statuses_after", lambda _run: None)
    monkeypatch.setattr(GroupRun, "facts", lambda _run, _topic: None)
    names = [f"topic-{number:04}" for number in range(count)]
    registry_of(instance).add(names)
    penstock = FixedTopics(clusters={"main": names}, per_run=100)
    with limited("code location", count, request):
        defs = defs_of(*names, source=penstock, settings=penstock.settings())
        repository = defs.get_repository_def()
        repository.load_all_definitions()
    assert len(repository.asset_graph.asset_check_keys) == 5 * count
    with (
        limited("quiet tick", count, request),
        dg.build_sensor_context(instance=instance, definitions=defs) as context,
    ):
        result = defs.resolve_sensor_def("new_topics__main").evaluate_tick(context)
    assert result.skip_message == f"no new topic; topics in the cluster: {count}"
    for size in (3, 100):
        with limited(f"run of {size}", count, request):
            keys = {key(name) for name in names[:size]}
            job = defs.resolve_job_def(LOAD).get_subset(asset_selection=keys, asset_check_selection=set())
            assert job.execute_in_process(instance=instance).success
        counted = [name for name in names if instance.get_latest_materialization_event(key(name)) is not None]
        assert counted == names[:size]
