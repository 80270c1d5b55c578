"""The rows that an increment delivers and commits: choices about replaced rows, transforms that group, and errors."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.identity.identity import table_state
from pipelines.increments.delta_output import SUMMARY, DeltaOutput
from pipelines.increments.increment import Increment, apply_increment, increments
from pipelines.increments.source import SourceVersion
from pipelines.maintenance.clean import clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from resources.errors import (
    IncrementOvertaken,
    LogTorn,
    OutputRefused,
    RowsReplaced,
    SourceChanged,
    SourceFilesCleaned,
    SourceLogCleaned,
    TableMissing,
)
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.increments.stored_outputs import rows_of
from tests.pipelines.increments.table_histories import TableHistory, copied, without_log
from tests.small_table import FORMATS, ONLY_DELTA, SmallIcebergTable, SmallTable

A = BrokerPartition(0, 0)


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "out"))


@pytest.fixture
def history(tmp_path: Path) -> TableHistory:
    return TableHistory(tmp_path / "lake", Random(7))


def values(increment: Increment) -> pa.RecordBatchReader:
    return increment.arrow(["value"])


@pytest.fixture(params=FORMATS)
def small(request: pytest.FixtureRequest, tmp_path: Path) -> SmallTable | SmallIcebergTable:
    """The source, in each format."""
    return FORMATS[request.param](tmp_path / "lake")


def apply(table: SmallTable, output: DeltaOutput, **options: Any) -> Any:
    return apply_increment(table.table, values, consumer="c", into=output, **options)


def output_rows(output: DeltaOutput) -> list[tuple[Any, ...]]:
    return rows_of(DeltaTable(output.uri).to_pyarrow_table())


def cut(small: SmallTable, start: int, stop: int) -> None:
    snapshot = small.table.snapshot()
    change = CutChange(state=table_state(snapshot, small.topic), ranges=(OffsetRange(A, start, stop),), run="cut")
    commit(small.table, snapshot, change)


@ONLY_DELTA
def test_a_new_consumer_starts_from_everything_and_then_gets_what_is_new(
    small: SmallTable, output: DeltaOutput
) -> None:
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    with increments(small.uri, consumer="c", into=output) as increment:
        assert (increment.since, increment.version, bool(increment)) == (-1, 2, True)
        increment.commit(increment.arrow())
    small.commit(small.write(80, 90))
    with increments(small.uri, consumer="c", into=output) as increment:
        assert (increment.since, increment.version) == (2, 3)
        assert increment.arrow([]).read_all().column("_source_offset").to_pylist() == [80]
        assert increment.summary() == {
            "consumer": "c",
            "source": "main/clicks",
            "since": 2,
            "version": 3,
            "new": 10,
            "restarted": 0,
            "replaced": 0,
            "taken_back": 0,
            "erased": 0,
        }


def test_an_increment_that_is_not_committed_comes_again(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    for _ in range(2):
        with increments(small.table, consumer="c", into=output) as increment:
            assert increment.arrow().read_all().num_rows == 5


def test_an_empty_increment_commits_nothing(small: SmallTable, output: DeltaOutput) -> None:
    with increments(small.table, consumer="c", into=output) as increment:  # a table before its first load
        assert not increment
        increment.commit(increment.arrow())
    assert not Path(output.uri).exists()
    small.commit(small.write(0, 50))
    apply(small, output)
    clean(small.table, keep=timedelta(0), target_bytes=10**6, dry_run=False)
    assert apply(small, output) is None
    assert DeltaTable(output.uri).version() == 1


def test_a_transform_without_rows_moves_the_progress(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    apply_increment(small.table, lambda increment: values(increment).schema.empty_table(), consumer="c", into=output)
    assert apply(small, output) is None
    assert output_rows(output) == []


def test_an_increment_is_committed_once(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    with increments(small.table, consumer="c", into=output) as increment:
        increment.commit(increment.arrow())
        with pytest.raises(ValueError, match="committed already"):
            increment.commit(increment.arrow())


def test_consumers_have_their_own_progress(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    for consumer in ("one", "two"):
        assert apply_increment(small.table, values, consumer=consumer, into=output)
    assert len(output_rows(output)) == 10


def test_the_entry_of_the_output_says_which_increment_it_is(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    done = apply(small, output)
    assert json.loads(DeltaTable(output.uri).history(1)[0][SUMMARY]) == done


# fault N43
@pytest.mark.parametrize("event", ["replay", "cut", "restart"])
def test_a_consumer_can_fail_if_rows_that_it_has_seen_change(
    event: str, history: TableHistory, output: DeltaOutput
) -> None:
    history.happen("load")
    apply(history, output, on_replaced="fail")
    history.happen("load")
    apply(history, output, on_replaced="fail")
    before = output_rows(output)
    history.happen(event)
    with pytest.raises(RowsReplaced, match="run once with `on_replaced` = apply or ignore"):
        apply(history, output, on_replaced="fail")
    assert output_rows(output) == before
    apply(history, output)
    assert output_rows(output) == history.source_rows()
    history.happen("load")
    apply(history, output, on_replaced="fail")
    assert output_rows(output) == history.source_rows()


def test_a_consumer_that_ignores_removed_rows_keeps_them(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 80))
    apply(small, output, on_replaced="ignore")
    cut(small, 40, 80)
    assert apply(small, output, on_replaced="ignore") is None
    small.commit(small.write(40, 90))
    apply(small, output, on_replaced="ignore")
    assert [row[2:] for row in output_rows(output)] == [*((offset, 1) for offset in range(0, 80, 10)), (80, 2)]


def test_rows_without_the_columns_of_the_source_are_refused(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    with increments(small.table, consumer="c", into=output) as increment:
        for rows in (pa.table({"count": [5]}), increment.arrow().read_all().drop_columns("_source_offset")):
            with pytest.raises(OutputRefused, match="no column _source"):
                increment.commit(rows)
    with increments(small.table, consumer="c", into=output, on_replaced="ignore") as increment:
        with pytest.raises(OutputRefused, match="neither rows of Arrow nor a DataFrame"):
            increment.commit("rows")
        increment.commit(pa.record_batch({"count": [5]}))
    assert DeltaTable(output.uri).to_pyarrow_table().to_pylist() == [{"count": 5}]


def tens(reader: pa.RecordBatchReader) -> list[int]:
    """The groups of the rows. A group has fifty offsets."""
    return sorted({offset // 50 for offset in reader.read_all().column("_source_offset").to_pylist()})


def touched(increment: Increment) -> list[int]:
    return sorted({*tens(increment.arrow([])), *tens(increment.removed([]))})


def counts(increment: Increment) -> pa.Table:
    """The number of rows of each group that the increment touches, from the whole table."""
    offsets = increment.dataset().to_table(columns=["offset"]).column("offset")
    groups = pc.floor(pc.divide(pc.cast(offsets, pa.float64()), 50.0)).cast(pa.int64())
    table = pa.table({"group": groups}).group_by("group").aggregate([([], "count_all")])
    return table.filter(pc.field("group").isin(touched(increment)))


def replaced_groups(increment: Increment) -> str:
    return f'"group" IN ({", ".join(map(str, touched(increment)))})'


@pytest.mark.slow
def test_a_transform_that_groups_replaces_the_groups_that_an_increment_touches(
    small: SmallTable, output: DeltaOutput
) -> None:
    def count() -> dict[int, int]:
        apply_increment(small.table, counts, consumer="c", into=output, removing=replaced_groups)
        rows = DeltaTable(output.uri).to_pyarrow_table()
        assert len(set(rows.column("group").to_pylist())) == rows.num_rows
        return dict(zip(rows.column("group").to_pylist(), rows.column("count_all").to_pylist(), strict=True))

    small.commit(small.write(0, 120))
    assert count() == {0: 5, 1: 5, 2: 2}
    small.commit(small.write(120, 160))
    assert count() == {0: 5, 1: 5, 2: 5, 3: 1}
    cut(small, 70, 160)
    assert count() == {0: 5, 1: 2}
    small.commit(small.write(70, 110))
    assert count() == {0: 5, 1: 5, 2: 1}


# fault N48
def test_rows_beyond_the_condition_are_refused(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 120))
    with (
        pytest.raises(OutputRefused, match="do not match the condition"),
        increments(small.table, consumer="c", into=output, removing=lambda _: "count = 1") as increment,
    ):
        increment.commit(pa.table({"count": [1, 2]}))
    assert DeltaTable(output.uri).to_pyarrow_table().num_rows == 0


# fault N46
def test_removed_rows_can_be_read_until_housekeeping_deletes_them(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 80))
    apply(small, output)
    cut(small, 40, 80)
    with increments(small.table, consumer="c", into=output) as increment:
        assert increment.removed(["value"]).read_all().column("_source_offset").to_pylist() == [40, 50, 60, 70]
        clean(small.table, keep=timedelta(0), target_bytes=1, dry_run=False)
        with pytest.raises(SourceFilesCleaned, match=r"version 1 of the table .* has lost files"):
            increment.removed().read_all()
        increment.commit(increment.arrow(["value"]))
    assert [offset for *_, offset, _ in output_rows(output)] == [0, 10, 20, 30]


def test_rows_are_those_of_the_version_that_is_committed(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 80))
    with increments(small.table, consumer="c", into=output) as increment:
        cut(small, 40, 80)
        increment.commit(increment.arrow(["value"]))
    assert len(output_rows(output)) == 8
    apply(small, output)
    assert len(output_rows(output)) == 4


def test_a_missing_table(tmp_path: Path, output: DeltaOutput) -> None:
    with pytest.raises(TableMissing), increments(str(tmp_path / "none"), consumer="c", into=output):
        pass


# fault N44
@pytest.mark.parametrize("loads", [1, 2, 4])
def test_a_table_that_was_loaded_again_is_not_taken_for_the_former(
    loads: int, tmp_path: Path, output: DeltaOutput
) -> None:
    small = SmallTable(tmp_path / "first")
    for start in (0, 10):
        small.commit(small.write(start, start + 10))
    apply(small, output)
    again = SmallTable(tmp_path / "again")
    for start in range(0, loads * 10, 10):
        again.commit(again.write(start, start + 10))
    with pytest.raises(SourceChanged, match="removed and loaded again, or an old copy"):
        apply(again, output)


# fault N44
@ONLY_DELTA
def test_an_older_copy_of_a_table_is_refused(small: SmallTable, tmp_path: Path, output: DeltaOutput) -> None:
    small.commit(small.write(0, 10))
    copy = copied(small, tmp_path / "copy")
    small.commit(small.write(10, 20))
    apply(small, output)
    with pytest.raises(SourceChanged, match="its newest version is 1"):
        apply_increment(str(copy), values, consumer="c", into=output)


@ONLY_DELTA
def test_a_moved_table_continues(small: SmallTable, tmp_path: Path, output: DeltaOutput) -> None:
    small.commit(small.write(0, 10))
    apply(small, output)
    small.commit(small.write(10, 20))
    moved = Path(small.uri).rename(tmp_path / "elsewhere")
    done = apply_increment(str(moved), values, consumer="c", into=output)
    assert done is not None
    assert (done["new"], done["source"]) == (10, "main/clicks")


# fault N45
@ONLY_DELTA
def test_a_log_that_was_cleaned_up_is_an_error_of_its_own(small: SmallTable, output: DeltaOutput) -> None:
    for start in range(0, 50, 10):
        small.commit(small.write(start, start + 10))
        if start == 10:
            apply(small, output)
    small.handle().create_checkpoint()
    without_log(small, 0, 1)
    apply(small, output)  # the entries from the consumer's version on are there
    assert len(output_rows(output)) == 5
    with pytest.raises(SourceLogCleaned, match=r"00000001\.json of the table .* is missing"):
        apply_increment(small.table, values, consumer="new", into=output)
    without_log(small, 5)
    with pytest.raises(SourceLogCleaned, match="build the output again"):
        apply(small, output)


@ONLY_DELTA
def test_a_damaged_entry_is_not_taken_for_a_clean_up(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 10))
    small.handle().create_checkpoint()
    (Path(small.uri) / "_delta_log" / f"{1:020d}.json").write_text("{")
    with pytest.raises(LogTorn, match="incomplete or damaged"):
        SourceVersion.newest(small.table)


@pytest.mark.slow
def test_a_compaction_of_source_and_output_changes_nothing(history: TableHistory, output: DeltaOutput) -> None:
    for event in ("load", "load", "compaction", "load", "load", "compaction"):
        history.happen(event)
        apply(history, output)
        DeltaTable(output.uri).optimize.compact()
    assert output_rows(output) == history.source_rows()


@pytest.mark.slow
def test_a_rewind_and_its_own_rewind(history: TableHistory, output: DeltaOutput) -> None:
    for event in ("load", "load", "load"):
        history.happen(event)
        apply(history, output)
    for target in (1, 3):
        rewind(plan_rewind(history.table, target, run="back"))
        apply(history, output)
        assert output_rows(output) == history.source_rows()


def failing(increment: Increment) -> pa.RecordBatchReader:
    """All rows, and then an error."""
    rows = increment.arrow(["value"])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows
        raise ZeroDivisionError("the transform is wrong")

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def test_an_error_of_the_transform_is_raised_as_it_is(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    with pytest.raises(ZeroDivisionError, match="the transform is wrong"):
        apply_increment(small.table, failing, consumer="c", into=output)
    apply(small, output)
    assert len(output_rows(output)) == 5


def test_polars_and_duckdb_read_and_write_increments(small: SmallTable, output: DeltaOutput) -> None:
    polars = pytest.importorskip("polars")

    def in_polars(increment: Increment) -> Any:
        return polars.from_arrow(increment.arrow(["value"]).read_all()).with_columns(by=polars.lit("polars"))

    def in_duckdb(increment: Increment) -> Any:
        rows = increment.arrow(["value"])
        return duckdb.from_arrow(rows).select("*, 'duckdb' as by")

    transforms: list[Callable[[Increment], Any]] = [in_polars, in_duckdb]
    for number, transform in enumerate(transforms):
        small.commit(small.write(number * 10, number * 10 + 10))
        apply_increment(small.table, transform, consumer="c", into=output)
    assert DeltaTable(output.uri).to_pyarrow_table().sort_by("_source_offset").column("by").to_pylist() == [
        "polars",
        "duckdb",
    ]


def test_an_increment_that_was_overtaken_is_computed_again(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    attempts: list[int] = []

    def slow(increment: Increment) -> Any:
        attempts.append(increment.version)
        if len(attempts) == 1:
            apply(small, output)
            small.commit(small.write(50, 60))
            apply(small, output)
            small.commit(small.write(60, 70))
        return values(increment)

    done = apply_increment(small.table, slow, consumer="c", into=output, sleep=lambda _: None)
    assert attempts == [1, 3]
    assert done is not None
    assert (done["since"], done["version"]) == (2, 3)
    assert len(output_rows(output)) == 7


@pytest.mark.slow
def test_the_last_attempt_raises(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    number = iter(range(50, 900, 10))

    def always_late(increment: Increment) -> Any:
        apply(small, output)
        for _ in range(2):
            start = next(number)
            small.commit(small.write(start, start + 10))
            apply(small, output)
        start = next(number)
        small.commit(small.write(start, start + 10))
        return values(increment)

    waits: list[float] = []
    with pytest.raises(IncrementOvertaken):
        apply_increment(small.table, always_late, consumer="c", into=output, attempts=3, sleep=waits.append)
    assert waits == [0.2, 0.4]
    with pytest.raises(ValueError, match="must be positive"):
        apply(small, output, attempts=0)


def test_the_rows_of_a_foreign_writer_stay(small: SmallTable, output: DeltaOutput) -> None:
    small.commit(small.write(0, 50))
    apply(small, output)
    rows = DeltaTable(output.uri).to_pyarrow_table().slice(0, 1)
    own = rows.set_column(rows.schema.get_field_index("_source"), "_source", pa.array(["hand"]))
    write_deltalake(output.uri, own, mode="append")
    cut(small, 0, 50)
    apply(small, output)
    assert DeltaTable(output.uri).to_pyarrow_table().column("_source").to_pylist() == ["hand"]


# fault U21
def test_all_rows_of_the_source_are_right_also_for_conditions_on_nulls(tmp_path: Path) -> None:
    """Deltalake's own dataset is wrong for structs and for columns that were added later."""
    with FakeCluster(logs={0: log_of([b'{"id": 1, "place": {"city": "Ulm"}}', b'{"id": 2}'])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json"})
        assert topic.load().error is None
        append(fake.logs[0], [b'{"id": 3, "coupon": "A"}'])
        assert topic.load().error is None
    output = DeltaOutput(uri=str(tmp_path / "output"))
    with increments(topic.table, consumer="c", into=output, on_replaced="ignore") as increment:
        rows = increment.dataset()
        increment.commit(pa.table({"rows": [rows.count_rows()]}))
    ids = {
        name: sorted(rows.to_table(["id"], filter=pc.field(name).is_null()).column("id").to_pylist())
        for name in ("place", "coupon", "id")
    }
    assert ids == {"place": [2, 3], "coupon": [1, 2], "id": []}
    assert rows.to_table(filter=pc.field(topic.table.snapshot().layout.partition_column).is_valid()).num_rows == 3
