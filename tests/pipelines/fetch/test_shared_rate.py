"""The limits of the settings reach the processes that fetch, and tasks that run at the same time divide them."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from kafka_io.brokers.fetch_rate import FetchRate
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.fetch import fetch_runner as executing
from pipelines.fetch.fetch_runner import FetchRunner
from pipelines.fetch.fetch_task import FetchTask, decode_task, to_json, with_shared_rate
from resources.kafka import open_cluster
from resources.progress import no_progress
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.small_table import SmallTable


def settings_with(**caps: Any) -> Settings:
    return Settings(lake="lake", clusters={"main": ClusterSettings(bootstrap="127.0.0.1:1")}, caps=Caps(**caps))


def limited_task(folder: Path) -> FetchTask:
    """A task with 100 bytes per second in all, and 50 from each broker."""
    task = SmallTable(folder).task(OffsetRange(BrokerPartition(0, 0), 0, 10))
    settings = replace(task.source.read_settings, rate=FetchRate(bytes_per_s=100, broker_bytes_per_s=50))
    return replace(task, source=replace(task.source, read_settings=settings))


def test_the_limits_of_the_settings_are_those_of_the_cluster() -> None:
    with open_cluster(settings_with(max_bytes_per_s=100, max_broker_bytes_per_s=50), "main") as cluster:
        source = cluster.source(BrokerPartition(None, 0))
    assert source.read_settings.rate == FetchRate(bytes_per_s=100, broker_bytes_per_s=50)
    with open_cluster(settings_with(), "main") as cluster:
        assert cluster.source(BrokerPartition(None, 0)).read_settings.rate == FetchRate()


@pytest.mark.parametrize(
    ("caps", "limits"),
    [({}, False), ({"max_bytes_per_s": 1}, True), ({"max_broker_bytes_per_s": 1}, True)],
)
def test_any_limit_lets_topics_fetch_one_at_a_time(caps: dict[str, int], limits: bool) -> None:
    assert Caps(**caps).limits_rate is limits


def test_tasks_divide_the_limits(tmp_path: Path) -> None:
    [shared] = with_shared_rate([limited_task(tmp_path)], lambda: 4)
    assert shared.source.read_settings.rate == FetchRate(bytes_per_s=25, broker_bytes_per_s=12.5)
    assert decode_task(to_json(shared)) == shared


def test_a_limit_of_one_task_is_divided_also_if_another_task_has_none(tmp_path: Path) -> None:
    limited = limited_task(tmp_path)
    free = SmallTable(tmp_path).task(limited.offsets)
    shared = with_shared_rate([free, limited], lambda: 2)
    assert [task.source.read_settings.rate for task in shared] == [
        FetchRate(),
        FetchRate(bytes_per_s=50, broker_bytes_per_s=25),
    ]
    assert with_shared_rate([free], Mock(side_effect=AssertionError)) == [free]


@pytest.mark.parametrize(
    ("cores", "steps_ahead", "share"),
    [(2, 0, 50), (64, 0, 100 / 3), (None, 0, 100 / 3), (2, 1, 50), (64, 1, 100 / 6), (None, 1, 100 / 6)],
)
def test_as_many_tasks_divide_the_limits_as_run_at_the_same_time(
    cores: int | None, steps_ahead: int, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs of the next steps run at the same time, too."""
    session, sent = Mock(), list[FetchTask]()
    monkeypatch.setattr(executing, "cores_of", lambda _session: cores)
    monkeypatch.setattr(executing, "SparkJob", Mock(**{"return_value.wait.return_value": []}))

    def create_frame(rows: pa.Table) -> Mock:
        sent.extend(map(decode_task, rows["fetch_task"].to_pylist()))
        return Mock()

    session.createDataFrame = create_frame
    task = limited_task(tmp_path)
    next_slice = replace(
        task.planned, offsets=replace(task.offsets, start=task.offsets.stop, stop=task.offsets.stop + 9)
    )
    later = [[replace(task, spark_task=number, planned=next_slice) for number in range(3)]] * steps_ahead
    runner = FetchRunner(lambda: session)
    runner.fetch([replace(task, spark_task=number) for number in range(3)], no_progress, later)
    assert [sent_task.source.read_settings.rate.bytes_per_s for sent_task in sent[:3]] == [share] * 3
