"""Consumers of a table from which rows were erased: late ones, and those that keep totals."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import delete_erased
from pipelines.verify.verify import verify
from resources.errors import SourceFilesCleaned
from tests.small_table import SmallTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

ONE = BrokerPartition(None, 0)
ZELDA = parse_condition("key = 'zelda'")


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "out"))


def load(small: SmallTable, *keys: str) -> None:
    """Load a row of the value 1 for each key."""
    _, start = small.covered().get(ONE, (0, 0))
    offsets = range(start, start + len(keys))
    columns = {
        "offset": pa.array(offsets, pa.int64()),
        "key": pa.array([key.encode() for key in keys]),
        "value": pa.array([b"1"] * len(keys)),
    }
    small.commit(small.write_columns(OffsetRange(ONE, start, offsets.stop), columns, broker=None, inner=None))


def forget(small: SmallTable, *, finish: bool = True) -> None:
    assert erase(EraseRequest(table=small.table, condition=ZELDA, run="erasure")).failure is None
    if finish:
        assert delete_erased(small.table, older_than=timedelta(), dry_run=False).deleted


def rows_of(output: DeltaOutput) -> list[Any]:
    return sorted(tuple(row.values()) for row in DeltaTable(output.uri).to_pyarrow_table().to_pylist())


@pytest.mark.parametrize("on_replaced", ["apply", "ignore"])
def test_a_consumer_that_is_hundreds_of_versions_behind_loses_the_erased_rows(
    on_replaced: Any, small: SmallTable, output: DeltaOutput
) -> None:  # fault P21
    """The files are deleted, the bounds in the log are hidden, and several checkpoints are newer."""

    def follow() -> None:
        apply_increment(small.table, keys, consumer="c", into=output, on_replaced=on_replaced)

    load(small, "adam", "zelda", "eve")
    follow()
    for number in range(120):
        load(small, f"a{number}", "zelda" if number == 7 else f"b{number}")
    forget(small)
    for number in range(120):
        load(small, f"c{number}")
    assert len(list(Path(small.uri, "_delta_log").glob("*.checkpoint.parquet"))) >= 1
    follow()
    found_keys = {key for key, *_ in rows_of(output)}
    assert (len(found_keys), b"zelda" in found_keys, small.rows()) == (361, False, 361)
    assert verify(small.table).proven


def keys(increment: Increment) -> pa.RecordBatchReader:
    return increment.arrow(["key"])


def touched(increment: Increment) -> list[bytes]:
    parts = [increment.arrow(["key"]).read_all(), increment.removed(["key"]).read_all()]
    return sorted({key for part in parts for key in part.column("key").to_pylist()})


def totals(increment: Increment) -> pa.Table:
    rows = increment.dataset().to_table(["key"], filter=pc.field("key").isin(touched(increment)))
    return rows.append_column("n", pa.array([1] * len(rows))).group_by("key").aggregate([("n", "sum")])


def their_totals(increment: Increment) -> str:
    return " OR ".join(f"key = decode('{key.hex()}', 'hex')" for key in touched(increment))


def test_a_total_loses_the_amount_of_an_erased_row_or_fails(  # fault N46
    small: SmallTable, output: DeltaOutput
) -> None:
    """What was removed can be read until its files are deleted. After that nobody knows which total it was in."""

    def follow() -> None:
        apply_increment(small.table, totals, consumer="c", into=output, removing=their_totals)

    load(small, "adam", "zelda", "zelda")
    follow()
    assert rows_of(output) == [(b"adam", 1), (b"zelda", 2)]
    forget(small, finish=False)
    follow()
    assert rows_of(output) == [(b"adam", 1)]
    load(small, "zelda", "eve")
    follow()
    forget(small)
    load(small, "adam")
    for _ in range(2):
        with pytest.raises(SourceFilesCleaned, match="has lost files"):
            follow()
    assert rows_of(output) == [(b"adam", 1), (b"eve", 1), (b"zelda", 1)]

    def other_groups(increment: Increment) -> str:
        """All groups are computed again, because nobody knows which one had the row."""
        del increment
        return "true"

    def all_totals(increment: Increment) -> pa.Table:
        rows = increment.dataset().to_table(["key"])
        return rows.append_column("n", pa.array([1] * len(rows))).group_by("key").aggregate([("n", "sum")])

    compute: Callable[[Increment], pa.Table] = all_totals
    apply_increment(small.table, compute, consumer="c", into=output, removing=other_groups)
    assert rows_of(output) == [(b"adam", 2), (b"eve", 1)]
