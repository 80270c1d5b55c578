"""After any history, an output that followed it in increments has the same rows as the source."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, OnReplaced, apply_increment
from resources.errors import RowsReplaced, SourceFilesCleaned
from tests.pipelines.increments.stored_outputs import StoredOutput, rows_of
from tests.pipelines.increments.table_histories import (
    EVENTS,
    RETIRING,
    Loaded,
    Place,
    SourceRow,
    TableHistory,
    TableModel,
)
from tests.thorough import first

pytestmark = pytest.mark.slow  # long histories


_HARMLESS = {"load", "filter", "backfill", "erase", "retire", "compaction", "clean"}
"""Events that replace no row, and take none back."""


def mirrored(stored: StoredOutput) -> list[SourceRow]:
    """The place, loading time and value of each row of the output."""
    table = stored.table()
    if table is None:
        return []
    names = ("_source_partition", "_source_offset", "_source_loaded_at_us", "value")
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def delivered_once(increment: Increment) -> pa.Table:
    rows = increment.arrow(["value"]).read_all()
    places = rows_of(rows)
    assert len(set(places)) == len(places)
    return rows


def as_rows(seen: Iterable[tuple[Place, Loaded]]) -> list[SourceRow]:
    """The rows of an output that has seen these rows."""
    return sorted((place.partition, place.offset, *row) for place, row in seen)


class Mirror:
    """A consumer that copies rows, and what its output must have by the words of docs/increments.md."""

    def __init__(self, history: TableHistory, stored: StoredOutput, on_replaced: OnReplaced) -> None:
        self.history, self.stored, self.on_replaced = history, stored, on_replaced
        self.seen: list[tuple[Place, Loaded]] = []
        self.model, self.version = TableModel(), -1
        self.events = 0

    def look(self) -> None:
        """Apply an increment, and compare the output."""
        before, now = self.model, self.history.model
        events, self.events = self.history.events[self.events :], len(self.history.events)
        try:
            done = self._apply(self.on_replaced)
            assert self.on_replaced != "fail" or not self.seen or not before.changed(now)
        except RowsReplaced:
            assert self.on_replaced == "fail"
            assert not _HARMLESS.issuperset(events)
            assert mirrored(self.stored) == as_rows(self.seen), self.history.events
            done = self._apply("apply")
        if done is not None:
            self.seen = self._by_ignoring(before, now) if self.on_replaced == "ignore" else self._by_applying(now)
            self.model, self.version = now, done["version"]
        assert mirrored(self.stored) == as_rows(self.seen), self.history.events
        assert self._apply(self.on_replaced) is None

    def _apply(self, on_replaced: OnReplaced) -> Any:
        return apply_increment(
            self.history.table,
            delivered_once,
            consumer="mirror",
            into=self.stored.output(),
            on_replaced=on_replaced,
            on_retired="ignore",
        )

    def _by_applying(self, now: TableModel) -> list[tuple[Place, Loaded]]:
        """A computation from scratch, and the rows that were retired since they were seen."""
        return [*now.rows.items(), *((place, row) for place, row in self.seen if place in now.retired)]

    def _by_ignoring(self, before: TableModel, now: TableModel) -> list[tuple[Place, Loaded]]:
        """What was seen and is not erased, and the rows of offsets that are new."""
        since = (hits for version, hits in self.history.erasures.items() if version > self.version)
        erased = set[Place]().union(*since)
        kept = ((place, row) for place, row in self.seen if place not in erased)
        return [*kept, *((place, row) for place, row in now.rows.items() if place not in before.covered)]


# faults N43, P16, P21
@pytest.mark.parametrize("seed", first(1, range(8)))
@pytest.mark.parametrize("on_replaced", ["apply", "fail", "ignore"])
def test_an_output_equals_a_full_recomputation(
    seed: int, on_replaced: OnReplaced, stored: StoredOutput, tmp_path: Path
) -> None:
    random = Random(seed)
    history = TableHistory(tmp_path / "lake", random)
    mirror = Mirror(history, stored, on_replaced)
    for event in ["load", *random.choices(RETIRING, k=18)]:
        history.happen(event)
        history.check()
        if random.random() < 0.4:
            mirror.look()
    mirror.look()


def values(increment: Increment) -> pa.Table:
    """The number of rows with each value, for the values that an increment touches."""
    rows = increment.dataset().to_table(["value"], filter=pc.field("value").isin(touched(increment)))
    return rows.group_by("value").aggregate([("value", "count")])


def touched(increment: Increment) -> list[bytes | None]:
    rows = [increment.arrow(["value"]).read_all(), increment.removed(["value"]).read_all()]
    return sorted({value for part in rows for value in part.column("value").to_pylist()})


def their_values(increment: Increment) -> str:
    literals = ", ".join(f"X'{value.hex()}'" for value in touched(increment) if value is not None)
    return f"value IN ({literals})" if literals else ""


# faults N43, N46
@pytest.mark.parametrize("seed", first(1, range(8)))
def test_totals_equal_a_full_recomputation(seed: int, tmp_path: Path) -> None:
    """An increment that comes after the deletion of removed rows fails, and the totals are built again."""
    random = Random(200 + seed)
    history = TableHistory(tmp_path / "lake", random)
    output = DeltaOutput(uri=str(tmp_path / "totals"))
    for event in ["load", *random.choices(EVENTS, k=18)]:
        history.happen(event)
        if random.random() < 0.6:
            try:
                apply_increment(history.table, values, consumer="totals", into=output, removing=their_values)
            except SourceFilesCleaned:
                assert history.model.rows.keys() != set() or history.events
                output = DeltaOutput(uri=str(tmp_path / f"totals {len(history.events)}"))
                apply_increment(history.table, values, consumer="totals", into=output, removing=their_values)
            counts = Counter(row.value for row in history.model.rows.values())
            rows = DeltaTable(output.uri).to_pyarrow_table().to_pylist()
            assert {row["value"]: row["value_count"] for row in rows} == counts, history.events


def test_two_sources_share_an_output(stored: StoredOutput, tmp_path: Path) -> None:
    """Rows of another source with the same partition, offset and loading time stay when rows are removed."""
    first, second = TableHistory(tmp_path / "first", Random(1)), TableHistory(tmp_path / "second", Random(1))
    second.topic = replace(second.topic, name="views")
    output = stored.output()
    for history in (first, second, first, second):
        history.happen("load")
        apply_increment(history.table, delivered_once, consumer="both", into=output)
    first.happen("cut")
    apply_increment(first.table, delivered_once, consumer="both", into=output)
    table = stored.table()
    assert table is not None
    assert rows_of(table) == sorted([*first.source_rows(), *second.source_rows()])
