"""After any history, an output that followed it in increments has the same rows as the source."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.duckdb_output import DuckDBOutput
from pipelines.increments.increment import Increment, apply_increment
from pipelines.increments.output import IncrementOutput
from pipelines.increments.source_columns import SOURCE_COLUMNS
from tests.pipelines.increments.table_histories import EVENTS, SourceRow, TableHistory

Mirror = tuple[IncrementOutput, Callable[[], list[SourceRow]]]


def in_delta(folder: Path) -> Mirror:
    uri = str(folder / "mirror")

    def rows() -> list[SourceRow]:
        return rows_of(DeltaTable(uri).to_pyarrow_table()) if (folder / "mirror").exists() else []

    return DeltaOutput(uri=uri), rows


def in_duckdb(folder: Path) -> Mirror:
    path = folder / "mirror.duckdb"

    def rows() -> list[SourceRow]:
        if not path.exists():
            return []
        with duckdb.connect(path) as connection:
            return rows_of(connection.sql("from clicks").to_arrow_table())

    return DuckDBOutput(path=path, table="clicks"), rows


def rows_of(table: pa.Table) -> list[SourceRow]:
    _, *names = SOURCE_COLUMNS.names
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def delivered_once(increment: Increment) -> pa.Table:
    rows = increment.arrow(["value"]).read_all()
    places = rows_of(rows)
    assert len(set(places)) == len(places)
    return rows


@pytest.mark.parametrize("kind", [in_delta, in_duckdb])
@pytest.mark.parametrize("seed", range(8))
def test_an_output_equals_a_full_recomputation(seed: int, kind: Callable[[Path], Mirror], tmp_path: Path) -> None:
    random = Random(seed)
    history = TableHistory(tmp_path / "lake", random)
    output, rows = kind(tmp_path)
    for event in random.choices(EVENTS, k=18):
        history.happen(event)
        if random.random() < 0.4:
            apply_increment(history.table, delivered_once, consumer="mirror", into=output)
            assert rows() == history.source_rows(), history.events
    apply_increment(history.table, delivered_once, consumer="mirror", into=output)
    assert rows() == history.source_rows(), history.events
    assert apply_increment(history.table, delivered_once, consumer="mirror", into=output) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_consumer_that_ignores_replaced_rows_gets_each_new_offset(seed: int, tmp_path: Path) -> None:
    """If there are neither rewinds nor cuts, each offset is delivered exactly once."""
    random = Random(seed)
    history = TableHistory(tmp_path / "lake", random)
    output, rows = in_delta(tmp_path)
    for event in random.choices([event for event in EVENTS if event not in {"rewind", "cut"}], k=15):
        history.happen(event)
        apply_increment(
            history.table, lambda increment: increment.arrow(["value"]), consumer="m", into=output, on_replaced="ignore"
        )
    assert [row[:3] for row in rows()] == [row[:3] for row in history.source_rows()]


def test_two_sources_share_an_output(tmp_path: Path) -> None:
    """Rows of another source with the same partition, offset and loading time stay when rows are removed."""
    first, second = TableHistory(tmp_path / "first", Random(1)), TableHistory(tmp_path / "second", Random(1))
    second.topic = replace(second.topic, name="views")
    output, rows = in_delta(tmp_path)
    for history in (first, second, first, second):
        history.happen("load")
        apply_increment(history.table, delivered_once, consumer="both", into=output)
    first.happen("cut")
    apply_increment(first.table, delivered_once, consumer="both", into=output)
    assert rows() == sorted([*first.source_rows(), *second.source_rows()])
