"""A fetch holds the columns of one batch at a time: each batch is decoded into the memory of the one before it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from kafka_io.jit.memory_pool import PooledMemory
from kafka_io.records import column_builder
from kafka_io.records.decoded_batch import DecodeLimits
from pipelines.fetch import slice_file
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.slice_facts import SliceFacts
from resources.kafka import open_cluster
from resources.progress import Progress
from resources.settings.settings import ClusterSettings, Settings
from tests.fakes.cluster import FakeCluster
from tests.fakes.loaders import loader_of
from tests.fakes.records import holding, numbered, values

_BATCH_BYTES = 100  # each record batch of the fake is larger


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def test_a_batch_is_decoded_into_the_memory_of_the_one_before(
    fake: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: defaultdict[tuple[str, int], list[int]] = defaultdict(list)

    def noted(size: int, purpose: str) -> PooledMemory:
        memory = PooledMemory(size, purpose)
        places[purpose, len(memory.bytes)].append(memory.bytes.ctypes.data)
        return memory

    def fetch_small_batches(tasks: Sequence[FetchTask], on_progress: Progress, _ahead: object) -> list[SliceFacts]:
        reading = replace(tasks[0].source.read_settings, limits=DecodeLimits(batch_bytes=_BATCH_BYTES))
        return fetch_here(
            [replace(task, source=replace(task.source, read_settings=reading)) for task in tasks], on_progress
        )

    monkeypatch.setattr(column_builder, "PooledMemory", noted)
    monkeypatch.setattr(slice_file, "ROW_GROUP_BYTES", 1)
    fake.logs[0] = holding(0, 50)
    with fake:
        clusters = {"main": ClusterSettings(bootstrap=fake.bootstrap[0].address)}
        settings = Settings(lake=str(tmp_path), clusters=clusters)
        with open_cluster(settings, "main") as cluster:
            loaded = loader_of(settings, cluster, no_spark, fetch=fetch_small_batches).load("clicks")
    assert loaded.error is None
    assert values(tmp_path) == numbered(0, 50)
    assert {purpose for (purpose, _), uses in places.items() if len(uses) >= 5} >= {"offsets", "values", "value_ends"}
    assert {key for key, uses in places.items() if len(set(uses)) > 1} == set()
