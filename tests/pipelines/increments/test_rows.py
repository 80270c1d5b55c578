"""Rows of spans are read from the files that can hold them, and no others."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import Field
from deltalake.schema import PrimitiveType

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.increments import rows as rows_module
from pipelines.increments.difference import LoadedSpan
from pipelines.increments.rows import SpanRows
from pipelines.increments.source_columns import SOURCE_COLUMNS, of_source_rows, spans_condition
from resources.errors import LakeUnavailable, OutputRefused
from tests.pipelines.increments.table_histories import TableHistory
from tests.small_table import SmallTable

A, B = BrokerPartition(0, 0), BrokerPartition(0, 1)


def span(partition: BrokerPartition, start: int, stop: int, *times: int) -> LoadedSpan:
    return LoadedSpan(OffsetRange(partition, start, stop), times)


def reading(table: SmallTable, *spans: LoadedSpan) -> SpanRows:
    snapshot = table.table.snapshot()
    return SpanRows(lake=table.lake, opened=snapshot.opened, layout=snapshot.layout, source="main/clicks", spans=spans)


def places(rows: SpanRows) -> list[tuple[int, int, int]]:
    table = rows.reader([]).read_all()
    names = ("_source_partition", "_source_offset", "_source_loaded_at_us")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


@pytest.fixture
def loaded(tmp_path: Path) -> SmallTable:
    small = SmallTable(tmp_path / "lake")
    small.commit(small.write(0, 50), small.write(50, 100), small.write(0, 50, partition=1))
    return small


def test_only_rows_with_an_offset_and_a_loading_time_of_the_span_are_read(loaded: SmallTable) -> None:
    assert places(reading(loaded, span(A, 20, 60, 1, 2))) == [(0, 20, 1), (0, 30, 1), (0, 40, 1), (0, 50, 2)]
    assert places(reading(loaded, span(A, 20, 60, 2))) == [(0, 50, 2)]
    assert places(reading(loaded, span(BrokerPartition(1, 0), 0, 100, 1, 2))) == []
    assert places(reading(loaded, span(A, 0, 10, 1), span(B, 40, 90, 3))) == [(0, 0, 1), (1, 40, 3)]
    assert places(reading(loaded)) == []


def test_files_without_such_offsets_are_not_opened(loaded: SmallTable) -> None:
    rows = reading(loaded, span(A, 50, 80, 2))
    [file] = rows.files()
    for path in Path(loaded.uri).glob("date=*/*.parquet"):
        if str(path.relative_to(loaded.uri)) != file.path:
            path.unlink()
    assert places(rows) == [(0, 50, 2), (0, 60, 2), (0, 70, 2)]


def test_a_file_without_bounds_may_hold_everything(loaded: SmallTable) -> None:
    for entry in (Path(loaded.uri) / "_delta_log").glob("*1.json"):
        entry.write_text(entry.read_text().replace('\\"offset\\":', '\\"offset_\\":'))
    rows = reading(loaded, span(A, 50, 80, 2))
    assert len(rows.files()) == 2
    assert places(rows) == [(0, 50, 2), (0, 60, 2), (0, 70, 2)]


def test_many_spans_are_read_exactly(loaded: SmallTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_MAX_RANGES_IN_FILTER", 2)
    spans = [span(A, offset, offset + 10, 1, 2) for offset in range(0, 100, 20)]
    assert [offset for _, offset, _ in places(reading(loaded, *spans, span(B, 40, 50, 3)))] == [0, 20, 40, 60, 80, 40]


def test_batches_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_BATCH_ROWS", 16)
    small = SmallTable(tmp_path / "lake")
    small.commit(small.write(0, 1000))
    sizes = [batch.num_rows for batch in reading(small, span(A, 0, 1000, 1)).reader()]
    assert (max(sizes), sum(sizes)) == (16, 100)


def test_the_columns_are_those_of_the_table_and_of_the_source(loaded: SmallTable) -> None:
    rows = reading(loaded, span(A, 0, 10, 1))
    table = rows.reader().read_all()
    assert table.schema.names == [*loaded.handle().to_pyarrow_dataset().schema.names, *SOURCE_COLUMNS.names]
    assert table.select(SOURCE_COLUMNS.names).to_pylist() == [
        {
            "_source": "main/clicks",
            "_source_broker": 0,
            "_source_partition": 0,
            "_source_offset": 0,
            "_source_loaded_at_us": 1,
        }
    ]
    assert rows.reader(["value", "date"]).schema.names == ["value", "date", *SOURCE_COLUMNS.names]


def test_rows_after_a_compaction(tmp_path: Path) -> None:
    history = TableHistory(tmp_path / "lake", Random(1))
    for event in ("load", "load", "compaction", "load"):
        history.happen(event)
    times = {row[3] for row in history.source_rows()}
    everything = [span(partition, *bounds, *times) for partition, bounds in history.covered().items()]
    assert len(places(reading(history, *everything))) == history.rows()


def test_a_table_with_columns_of_these_names_is_refused(loaded: SmallTable) -> None:
    loaded.handle().alter.add_columns([Field("_source", PrimitiveType("string"))])
    with pytest.raises(OutputRefused, match="columns of its own with the name _source"):
        reading(loaded, span(A, 0, 10, 1)).reader()


def test_a_file_that_is_gone_is_an_error_of_the_lake(loaded: SmallTable) -> None:
    rows = reading(loaded, span(A, 0, 100, 1, 2))
    for path in Path(loaded.uri).glob("date=*/*.parquet"):
        path.unlink()
    with pytest.raises(LakeUnavailable):
        rows.reader().read_all()


def test_a_condition_for_thousands_of_spans_is_not_deep() -> None:
    spans = [span(BrokerPartition(None, number), 0, 10, 1) for number in range(3000)]
    names = {"broker": "b", "partition": "p", "offset": "o", "loaded_at_us": "t"}
    text, depth, deepest = spans_condition(spans, names), 0, 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        deepest = max(deepest, depth)
    assert text.count(" OR ") == 2999
    assert deepest < 16


def test_the_name_of_a_source_is_quoted() -> None:
    assert of_source_rows("it's/clicks", [span(A, 0, 10, 1, 2)]) == (
        "_source = 'it''s/clicks' AND (_source_broker = 0 AND _source_partition = 0 AND _source_offset >= 0 "
        "AND _source_offset < 10 AND _source_loaded_at_us IN (1, 2))"
    )


def test_the_loading_time_keeps_its_microseconds(tmp_path: Path) -> None:
    small = SmallTable(tmp_path / "lake")
    small._loaded_at = 1_769_000_000_123_455
    small.commit(small.write(0, 20))
    assert places(reading(small, span(A, 0, 20, 1_769_000_000_123_456)))[0][2] == 1_769_000_000_123_456
    assert pa.types.is_int64(reading(small).reader().schema.field("_source_loaded_at_us").type)
