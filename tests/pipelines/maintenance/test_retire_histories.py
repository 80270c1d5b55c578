"""Whatever happens to a table in which old rows are retired: it has the rows of a model, and so have its consumers."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.identity.identity import table_state
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import apply_increment
from pipelines.ledger.committed_range import ExactCause
from pipelines.ledger.exact_offsets import NO_OFFSETS
from pipelines.maintenance.clean import clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.exact_slices import exact_of_slices
from pipelines.rewrites.replay import ReplayChange
from resources.errors import RewindRefused
from tests.pipelines.maintenance.old_rows import DatedTable
from tests.pipelines.taken_out import rows_of
from tests.thorough import first

EVENTS = ("load", "load", "load", "replay", "cut", "rewind", "compaction", "clean", "retire", "retire", "look")


class Row(NamedTuple):
    """A row of the model."""

    partition: int
    offset: int
    loaded_at: int


class Model(NamedTuple):
    """What a version of the table has: its rows with their days, the places of retired rows, and its cursors."""

    rows: dict[Row, int]
    retired: frozenset[tuple[int, int]]
    cursors: dict[int, int]


class RetiringHistory(DatedTable):
    """A table with two partitions to which something random happens, and a model of it.

    Attributes:
        model: what the table must have.
        seen: the rows that the consumer's output must have.
    """

    def __init__(self, root: Path, random: Random) -> None:
        super().__init__(root)
        self.random = random
        self.model = Model({}, frozenset(), {})
        self.seen: set[Row] = set()
        self._versions: dict[int, Model] = {0: self.model}
        self._output = DeltaOutput(uri=str(root / "out"))

    def happen(self, event: str) -> None:
        """Let something happen, and compare the table with the model."""
        self.today += self.random.randint(0, 1)
        getattr(self, f"_{event}")()
        self._versions[self.table.snapshot().version] = self.model
        rows = self.handle().to_pyarrow_table(columns=["partition", "offset", "loaded_at"])
        times = rows.column("loaded_at").cast(pa.int64()).to_pylist()
        places = zip(rows.column("partition").to_pylist(), rows.column("offset").to_pylist(), times, strict=True)
        assert sorted(Row(*place) for place in places) == sorted(self.model.rows)
        assert self.problems() == ()

    def _load(self) -> None:
        slices, cursors = [], dict(self.model.cursors)
        self.model = self.model._replace(rows=dict(self.model.rows))
        for number in self.random.sample(range(2), self.random.randint(1, 2)):
            for _ in range(self.random.randint(1, 2)):
                start = cursors.get(number, 0)
                cursors[number] = start + self.random.randint(1, 6)
                gone = {start} if self.random.random() < 0.3 else set()
                slices.append(self.records(start, cursors[number], partition=number, without=gone))
                added = (offset for offset in range(start, cursors[number]) if offset not in gone)
                self.model.rows.update({Row(number, offset, self._loaded_at): self.today for offset in added})
        self.commit(*slices)
        self.model = self.model._replace(cursors=cursors)

    def _some(self) -> OffsetRange | None:
        filled = {number: cursor for number, cursor in self.model.cursors.items() if cursor}
        if not filled:
            return None
        number = self.random.choice(sorted(filled))
        start = self.random.randrange(filled[number])
        return OffsetRange(BrokerPartition(None, number), start, self.random.randint(start + 1, filled[number]))

    def _without(self, offsets: OffsetRange) -> dict[Row, int]:
        number = offsets.partition.partition
        return {
            row: loaded
            for row, loaded in self.model.rows.items()
            if row.partition != number or not offsets.start <= row.offset < offsets.stop
        }

    def _replay(self) -> None:
        """The brokers have what the table has, and what was retired: that must not come back."""
        if (offsets := self._some()) is None:
            return
        number, snapshot = offsets.partition.partition, self.table.snapshot()
        there = {row.offset for row in self.model.rows if row.partition == number}
        gone = set(range(offsets.start, offsets.stop)) - there
        retired = {offset for partition, offset in self.model.retired if partition == number} & gone
        facts = self.records(offsets.start, offsets.stop, partition=number, without=gone)
        exact = exact_of_slices(self.table, {offsets.partition: self.ranges(number)}, [offsets]).get(offsets, {})
        stored = self.table.exact_sets(replace(facts.range, exact=exact)).get(ExactCause.RETIRED, NO_OFFSETS)
        assert stored == rows_of(*sorted(retired)) or not retired
        counted = {"compacted": len(gone - retired), "retired": len(retired)}
        gaps = {cause: count for cause, count in counted.items() if count}
        facts = replace(facts, range=replace(facts.range, gaps=gaps, exact=exact))
        state = table_state(snapshot, self.topic)
        change = ReplayChange(
            fetched_rows=lambda part: part.rows, state=state, ranges=(offsets,), facts=(facts,), run="replay"
        )
        commit(self.table, snapshot, change)
        again = (offset for offset in range(offsets.start, offsets.stop) if offset not in gone)
        rows = {**self._without(offsets), **{Row(number, offset, self._loaded_at): self.today for offset in again}}
        self.model = self.model._replace(rows=rows)

    def _cut(self) -> None:
        if (offsets := self._some()) is None:
            return
        number, snapshot = offsets.partition.partition, self.table.snapshot()
        lost = OffsetRange(offsets.partition, offsets.start, self.model.cursors[number])
        commit(self.table, snapshot, CutChange(state=table_state(snapshot, self.topic), ranges=(lost,), run="cut"))
        retired = {place for place in self.model.retired if place[0] != number or place[1] < lost.start}
        cursors = {**self.model.cursors, number: lost.start}
        self.model = Model(self._without(lost), frozenset(retired), cursors)

    def _rewind(self) -> None:
        snapshot = self.table.snapshot()
        if snapshot.entry is None or snapshot.version < 2:
            return
        target = self.random.randint(1, snapshot.version - 1)
        try:
            rewind(plan_rewind(self.table, target, run="rewind"))
        except RewindRefused:
            return
        known = max(version for version in self._versions if version <= target)
        model = self._versions[known]
        self.model = model._replace(rows=dict(model.rows))

    def _compaction(self) -> None:
        clean(self.table, keep=timedelta(days=1), target_bytes=1_000_000, dry_run=False)

    def _clean(self) -> None:
        clean(self.table, keep=timedelta(0), target_bytes=1, dry_run=False)

    def _retire(self) -> None:
        before = self.today - self.random.randint(0, 3)
        old = {row for row, loaded in self.model.rows.items() if loaded < before}
        assert self.retire(before).rows == len(old)
        rows = {row: loaded for row, loaded in self.model.rows.items() if row not in old}
        retired = self.model.retired | {(row.partition, row.offset) for row in old}
        self.model = self.model._replace(rows=rows, retired=retired)

    def _look(self) -> None:
        """The consumer has all rows, and those that it has seen before they were retired."""
        if self.table.snapshot().entry is None:
            return
        columns = ["value"]
        apply_increment(
            self.table,
            lambda increment: increment.arrow(columns),
            consumer="c",
            into=self._output,
            on_retired="ignore",
        )
        kept = {row for row in self.seen if (row.partition, row.offset) in self.model.retired}
        self.seen = {*self.model.rows, *kept}
        self._check_output()

    def _check_output(self) -> None:
        if not self.seen:
            return
        rows: pa.Table = DeltaTable(self._output.uri).to_pyarrow_table()
        names = ["_source_partition", "_source_offset", "_source_loaded_at_us"]
        places = [rows.column(name).cast(pa.int64()).to_pylist() for name in names]
        assert sorted(Row(*place) for place in zip(*places, strict=True)) == sorted(self.seen)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(3, range(8)))
def test_table_and_consumer_have_the_rows_of_the_model(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    history = RetiringHistory(tmp_path / "lake", random)
    for event in ("load", *random.choices(EVENTS, k=18), "look"):
        history.happen(event)
