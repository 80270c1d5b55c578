"""Records of exact sets get no row. Offsets that the log no longer has are counted once: as those of the set."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.decoded_batch import DecodedBatch
from pipelines.fetch.left_out import LeftOut, SkippedRecords
from pipelines.layout.layout import RAW
from pipelines.ledger.committed_range import ExactCause
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.table.exact_sets import ExactSets, store_exact
from tests.pipelines.taken_out import rows_of
from tests.small_table import SmallTable

ONE, OF_07 = BrokerPartition(None, 0), BrokerPartition(0, 0)


def left_out(tmp_path: Path, partition: BrokerPartition, **offsets: tuple[int, ...]) -> LeftOut:
    inner = None if partition.broker is None else 0
    task = SmallTable(tmp_path).task(OffsetRange(partition, 0, 100))
    exact = {ExactCause(cause): store_exact("", {}, rows_of(*own, inner=inner)) for cause, own in offsets.items()}
    return LeftOut(replace(task, exact=exact), ExactSets.at(task.table_uri, task.options))


@pytest.mark.parametrize(
    ("offsets", "gaps", "rows", "gaps_left"),
    [
        (range(10), {}, [0, 1, 4, 5, 6, 7, 8, 9], {}),
        ([0, 1, 4, 9], {"compacted": 6}, [0, 1, 4, 9], {"compacted": 4}),
        ([0, 1, 2, 4, 9], {"hole": 3, "control": 2}, [0, 1, 4, 9], {"hole": 2, "control": 2}),
        ([], {"aborted": 1, "corrupt": 9}, [], {"corrupt": 8}),
    ],
)
def test_each_offset_has_a_row_or_one_gap(
    offsets: list[int], gaps: Mapping[str, int], rows: list[int], gaps_left: Mapping[str, int], tmp_path: Path
) -> None:
    sets = left_out(tmp_path, ONE, erased=(2, 50), filtered=(3,))
    decoded = DecodedBatch(pa.RecordBatch.from_pydict({"offset": pa.array(offsets, pa.int64())}), 10, gaps)
    batch, rest_of_gaps = sets.apply(decoded, OffsetRange(ONE, 0, 10))
    assert (batch.column("offset").to_pylist(), dict(rest_of_gaps)) == (rows, gaps_left)
    assert sets.counts(OffsetRange(ONE, 0, 10)) == {"erased": 1, "filtered": 1}
    assert len(rows) + sum(gaps_left.values()) + 2 == 10


def test_only_the_causes_of_the_offsets_that_were_read_are_named(tmp_path: Path) -> None:
    """A slice can end before a record that cannot be read."""
    sets = left_out(tmp_path, ONE, erased=(2, 50), filtered=(60,))
    assert list(sets.stored(OffsetRange(ONE, 0, 50))) == ["erased"]
    assert sets.counts(OffsetRange(ONE, 0, 50)) == {"erased": 1}


def test_gaps_of_0_7_are_bytes_and_stay(tmp_path: Path) -> None:
    sets = left_out(tmp_path, OF_07, erased=(20, 40))
    columns = {"offset": pa.array([0, 20, 20], pa.int64()), "inner": pa.array([0, 0, 1], pa.int32())}
    decoded = DecodedBatch(pa.RecordBatch.from_pydict(columns), 50, {"empty": 10})
    batch, gaps = sets.apply(decoded, OffsetRange(OF_07, 0, 50))
    assert (batch.column("inner").to_pylist(), gaps) == ([0, 1], {"empty": 10})


def test_a_slice_without_sets_is_not_touched(tmp_path: Path) -> None:
    decoded = DecodedBatch(pa.RecordBatch.from_pydict({"offset": pa.array([1], pa.int64())}), 10, {"compacted": 9})
    batch, gaps = left_out(tmp_path, ONE).apply(decoded, OffsetRange(ONE, 0, 10))
    assert batch is decoded.batch
    assert gaps is decoded.gaps


@pytest.mark.parametrize(
    ("partition", "skipped"),
    [
        (ONE, ExactOffsets.of(np.array([2, 5]))),
        (OF_07, ExactOffsets.of(np.array([2, 5]), np.array([1, 0]))),
    ],
)
def test_skipped_records_have_no_row_and_are_remembered(
    partition: BrokerPartition, skipped: ExactOffsets, tmp_path: Path
) -> None:
    records = SkippedRecords(SmallTable(tmp_path).task(OffsetRange(partition, 0, 9)), ExactCause.FILTERED, RAW)
    columns = {"offset": pa.array([1, 2, 2], pa.int64()), "inner": pa.array([0, 0, 1], pa.int32())}
    rows = pa.RecordBatch.from_pydict(columns)
    for mask in (None, np.zeros(3, np.bool_)):
        assert records.without(rows, mask) is rows
    assert records.stored() == ({}, {})
    assert records.without(rows, np.array([False, False, True])).equals(rows.slice(0, 2))
    last = pa.RecordBatch.from_pydict({"offset": pa.array([5], pa.int64()), "inner": pa.array([0], pa.int32())})
    assert records.without(last, np.array([True])).num_rows == 0
    counts, stored = records.stored()
    assert counts == {ExactCause.FILTERED: 2}
    assert ExactSets.at("", {}).of(stored[ExactCause.FILTERED]) == skipped
