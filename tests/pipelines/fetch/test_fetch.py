"""A worker reports what it lacks to write a slice, so that the slice is fetched again with it."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock, Mock

import numpy as np
import pyarrow as pa
import pytest

from kafka_io.errors import ConnectFailed, Corrupt, LocatedError, Where
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.unreadable import UnreadableRange
from kafka_io.records.decoded_batch import DecodedBatch
from pipelines.fetch.fetch import _fetch_group, _fetch_slice
from pipelines.fetch.fetch_task import SliceRoutes
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.routes.router import MAIN_ROUTE, RoutesOfRows
from resources.stores import durable
from tests.small_table import SOURCE, SmallTable


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


def decoded(*offsets: int, holes: tuple[int, int] | None = None) -> DecodedBatch:
    columns = {"offset": pa.array(offsets, pa.int64()), "value": pa.array([b"v"] * len(offsets), pa.binary())}
    return DecodedBatch(pa.RecordBatch.from_pydict(columns), offsets[-1] + 1, {}, holes)


def fetched(small: SmallTable, *batches: DecodedBatch, broker: int | None = None) -> list[SliceFacts]:
    task = small.task(OffsetRange(BrokerPartition(broker, 0), 0, 4))
    return list(_fetch_slice(task, Mock(), iter(batches), time.monotonic(), set()))


def test_holes_of_several_batches_are_one_range(small: SmallTable) -> None:
    first, second = decoded(1, holes=(0, 1)), decoded(3, holes=(2, 3))
    for batches, stop in (((first,), 1), ((first, second), 3), ((first, second, decoded(5)), 3)):
        [facts] = fetched(small, *batches)
        assert facts.observed.holes == OffsetRange(BrokerPartition(None, 0), 0, stop)
    [facts] = fetched(small, decoded(1))
    assert facts.observed.holes is None


def test_bytes_are_those_of_columns_and_in_0_7_those_of_the_log(small: SmallTable) -> None:
    batch = decoded(0, 3)
    [facts] = fetched(small, batch)
    assert (facts.range.bytes, facts.range.isolation) == (batch.batch.nbytes, "committed")
    [of_07] = fetched(small, batch, broker=0)
    assert (of_07.range.bytes, of_07.range.isolation) == (4, "")


@pytest.mark.parametrize(
    ("first", "error"),
    [([], Corrupt("wrong CRC", Where(offset=0))), ([0, 1], ConnectFailed("away")), ([], ConnectFailed("away"))],
    ids=["damaged start", "broker that went away", "broker that was away"],
)
def test_a_slice_is_not_cut_by_an_error_that_is_about_none_of_its_later_records(
    first: list[int], error: LocatedError, small: SmallTable
) -> None:  # faults N03, N04
    with pytest.raises(type(error)):
        failing(small, first, error)


def failing(small: SmallTable, first: list[int], error: LocatedError) -> list[SliceFacts]:
    """The facts of a slice whose read gives these records and then an error."""

    def batches() -> Iterator[DecodedBatch]:
        yield from [decoded(*first)] if first else []
        raise error

    at = len(first)
    reader = Mock(unreadable=Mock(return_value=UnreadableRange(start=at, stop=at + 1)))
    task = small.task(OffsetRange(BrokerPartition(None, 0), 0, 4))
    return list(_fetch_slice(task, reader, batches(), time.monotonic(), set()))


def test_the_records_before_a_damaged_one_are_kept(small: SmallTable) -> None:  # fault N03
    good, bad = failing(small, [0, 1], Corrupt("wrong CRC", Where(offset=2)))
    assert (good.offsets.stop, good.range.rows, good.failure) == (2, 2, None)
    assert (bad.offsets.start, bad.offsets.stop) == (2, 4)
    assert bad.failure is not None


def test_the_folders_of_new_files_are_forced_to_disk(
    small: SmallTable, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault L10
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync", synced.append)
    task = small.task(OffsetRange(BrokerPartition(None, 0), 0, 4))
    reader = Mock(read=lambda planned: [iter([decoded(0, 3)]) for _ in planned], serving=lambda _: None)
    [facts] = _fetch_group(SOURCE, [task], MagicMock(lent=lambda _: nullcontext(reader)))
    assert facts.range.rows == 2
    assert Path(small.uri, "date=2026-01-02") in synced
