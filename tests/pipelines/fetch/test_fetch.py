"""A worker reports what it lacks to write a slice, so that the slice is fetched again with it."""

import time
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.decoded_batch import DecodedBatch
from pipelines.fetch.fetch import _fetch_slice
from pipelines.fetch.fetch_task import SliceRoutes
from pipelines.routes.router import MAIN_ROUTE, RoutesOfRows
from tests.small_table import SmallTable


def test_schemas_whose_names_are_not_known_are_reported_for_all_batches(small: SmallTable) -> None:
    task = small.task(OffsetRange(BrokerPartition(None, 0), 0, 4))
    unnamed = iter([frozenset({(7, "")}), frozenset({(9, "0"), (7, "")})])
    router = Mock(of_rows=lambda batch: RoutesOfRows((None,), np.zeros(len(batch), np.int64), next(unnamed)))
    tasks = {MAIN_ROUTE: task, "orders": replace(task, folder="date=2026-01-03")}
    columns = {"offset": pa.array([0, 1], pa.int64()), "key": pa.array([None, b"k"]), "value": pa.array([b"v", b"w"])}
    batches = [DecodedBatch(pa.RecordBatch.from_pydict(columns), stop, {}) for stop in (2, 4)]
    routed = replace(task, routes=SliceRoutes(router, tasks))
    [facts] = _fetch_slice(routed, Mock(), iter(batches), time.monotonic(), set())
    assert facts.needs is not None
    assert (facts.needs.routes, facts.files) == (((7, ""), (9, "0")), ())
