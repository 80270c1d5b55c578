"""A retirement takes no result out of an output, and a consumer that has not seen the rows hears of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from kafka_io.model import OffsetRange
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.identity.identity import table_state
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment, increments
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.exact_slices import exact_of_slices
from pipelines.rewrites.replay import ReplayChange
from resources.errors import RowsRetired
from tests.pipelines.maintenance.old_rows import ONE, DatedTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it


@pytest.fixture
def dated(tmp_path: Path) -> DatedTable:
    """Three days with ten rows each."""
    table = DatedTable(tmp_path / "lake")
    for number in range(3):
        table.today = number
        table.commit(table.records(10 * number, 10 * number + 10))
    return table


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "out"))


def apply(table: DatedTable, output: DeltaOutput, **options: Any) -> Any:
    return apply_increment(
        table.table, lambda increment: increment.arrow(["value"]), consumer="c", into=output, **options
    )


def seen(output: DeltaOutput) -> list[int]:
    offsets: list[int] = DeltaTable(output.uri).to_pyarrow_table().column("_source_offset").to_pylist()
    return sorted(offsets)


def replay(table: DatedTable, start: int, stop: int, facts: SliceFacts | None = None) -> None:
    snapshot = table.table.snapshot()
    change = ReplayChange(
        fetched_rows=lambda part: part.rows,
        state=table_state(snapshot, table.topic),
        ranges=(OffsetRange(ONE, start, stop),),
        facts=(facts or table.records(start, stop),),
        run="replay",
    )
    commit(table.table, snapshot, change)


def test_results_of_retired_rows_stay(dated: DatedTable, output: DeltaOutput) -> None:
    apply(dated, output)
    dated.retire(2)
    assert apply(dated, output) is None
    dated.commit(dated.records(30, 35))
    summary = apply(dated, output)
    assert (summary["new"], summary["taken_back"], summary["replaced"]) == (5, 0, 0)
    assert seen(output) == list(range(35))


def totals(increment: Increment) -> pa.Table:
    """The number of rows of each year, which has grown by the new rows."""
    years = pc.year(increment.arrow(["loaded_at"]).read_all().column("loaded_at"))
    sums = pa.table({"year": years, "rows": [1] * len(years)}).group_by("year").aggregate([("rows", "sum")])
    return sums.rename_columns(["year", "rows"])


def test_a_yearly_total_stays(dated: DatedTable, output: DeltaOutput) -> None:  # fault P22
    """Totals cannot take back a row, and need not."""
    options: dict[str, Any] = {"consumer": "years", "into": output, "on_replaced": "fail"}
    apply_increment(dated.table, totals, **options)
    dated.retire(2)
    dated.commit(dated.records(30, 35))
    apply_increment(dated.table, totals, **options)
    rows = DeltaTable(output.uri).to_pyarrow_table()
    assert (set(rows.column("year").to_pylist()), sum(rows.column("rows").to_pylist())) == ({2026}, 35)


def test_a_consumer_that_has_not_seen_the_rows_is_told_so(dated: DatedTable, output: DeltaOutput) -> None:
    apply(dated, output)
    dated.today = 3
    dated.commit(dated.records(30, 40))
    dated.today = 4
    dated.commit(dated.records(40, 50))
    dated.retire(4)
    with pytest.raises(RowsRetired, match=r"consumer c has not seen all rows of partition 0 \[30, 40\) and 0 more"):
        apply(dated, output)
    summary = apply(dated, output, on_retired="ignore")
    assert summary["new"] == 20
    assert seen(output) == [*range(30), *range(40, 50)]
    assert apply(dated, output) is None


def test_a_new_consumer_has_missed_nothing(dated: DatedTable, output: DeltaOutput) -> None:
    dated.retire(1)
    apply(dated, output)
    assert seen(output) == list(range(10, 30))


def test_rows_that_were_replaced_and_then_retired_are_not_seen_either(dated: DatedTable, output: DeltaOutput) -> None:
    apply(dated, output)
    dated.today = 3
    replay(dated, 0, 10)
    dated.today = 4
    dated.retire(4)
    with pytest.raises(RowsRetired):
        apply(dated, output)
    apply(dated, output, on_retired="ignore")
    assert seen(output) == list(range(30))


def test_a_replay_of_retired_rows_takes_no_result_out(  # fault P22
    dated: DatedTable, output: DeltaOutput
) -> None:
    """Its slice has the offsets of a retired day and of a later one."""
    apply(dated, output)
    dated.retire(1)
    offsets = OffsetRange(ONE, 5, 15)
    exact = exact_of_slices(dated.table, {ONE: dated.ranges()}, [offsets])[offsets]
    dated.today = 3
    facts = dated.records(5, 15, without=range(5, 10), cause="retired")
    replay(dated, 5, 15, replace(facts, range=replace(facts.range, exact=exact)))
    assert apply(dated, output)["replaced"] == 5
    assert seen(output) == list(range(30))
    snapshot = dated.table.snapshot()
    cut = CutChange(state=table_state(snapshot, dated.topic), ranges=(OffsetRange(ONE, 7, 30),), run="cut")
    commit(dated.table, snapshot, cut)
    apply(dated, output)
    assert seen(output) == list(range(7))


def test_rows_that_a_rewind_brings_back_are_delivered_once(dated: DatedTable, output: DeltaOutput) -> None:  # fault P22
    """The first consumer has seen them before they were retired, and the second one has not."""
    apply(dated, output)
    dated.retire(2)
    later = DeltaOutput(uri=f"{output.uri}-later")
    apply(dated, later)
    rewind(plan_rewind(dated.table, dated.table.snapshot().version - 1, run="rewind"))
    for own in (output, later):
        apply(dated, own)
        assert seen(own) == list(range(30))


def test_rows_that_were_retired_and_are_loaded_again_are_seen(dated: DatedTable, output: DeltaOutput) -> None:
    """A replay that somebody made without the sets of another version, for example. The rows are there."""
    apply(dated, output)
    dated.retire(1)
    snapshot = dated.table.snapshot()
    cut = CutChange(state=table_state(snapshot, dated.topic), ranges=(OffsetRange(ONE, 0, 30),), run="cut")
    commit(dated.table, snapshot, cut)
    dated.commit(dated.records(0, 30))
    apply(dated, output)
    assert seen(output) == list(range(30))
    rows = DeltaTable(output.uri).to_pyarrow_table().column("_source_loaded_at_us").to_pylist()
    assert len(set(rows)) == 1


def test_retired_rows_that_are_cut_are_taken_back_by_their_own_loading_time(
    dated: DatedTable, output: DeltaOutput
) -> None:
    """The entry of the retirement does not know it: its ranges are merged."""
    apply(dated, output)
    dated.retire(3)
    dated.commit(dated.records(30, 40))
    apply(dated, output)
    snapshot = dated.table.snapshot()
    cut = CutChange(state=table_state(snapshot, dated.topic), ranges=(OffsetRange(ONE, 5, 40),), run="cut")
    commit(dated.table, snapshot, cut)
    apply(dated, output)
    assert seen(output) == list(range(5))


def test_the_retired_offsets_are_named(dated: DatedTable, output: DeltaOutput) -> None:
    apply(dated, output)
    dated.commit(dated.records(30, 40))
    dated.retire(5)
    with increments(dated.table, consumer="c", into=output, on_retired="ignore") as increment:
        assert [str(span) for span in increment.difference.retired] == ["partition 0 [30, 40)"]
        assert increment.arrow(["value"]).read_all().num_rows == 0
        increment.commit(increment.arrow(["value"]))
