"""Random histories of a real table, and a model of its rows in plain Python.

There are loads, also of records that `skip` leaves out, backfills, replays, cuts, rewinds, compactions and recreated
topics; rows are erased, retired, decoded again and stored again, and housekeeping deletes files.
"""

import shutil
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import LoadChange, commit
from pipelines.commit.replacement import CutChange
from pipelines.identity.identity import table_state
from pipelines.layout.conditions import parse_condition
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.exact_slices import exact_of_slices
from pipelines.rewrites.redecode import RedecodeChange
from pipelines.rewrites.replay import ReplayChange
from pipelines.rewrites.rewrite import RewriteRequest, rewrite
from pipelines.table.exact_sets import store_exact
from pipelines.table.row_filter import arrow_filter
from pipelines.table.table_store import TableSnapshot
from resources.errors import RewindRefused
from resources.settings.choices import Choices
from resources.settings.topic_formats import TopicFormat
from tests.pipelines.maintenance.old_rows import DatedTable, day
from tests.pipelines.taken_out import rows_of
from tests.small_table import SmallTable

EVENTS = (
    *("load", "load", "load", "filter", "backfill", "replay", "cut", "rewind", "compaction", "restart", "erase"),
    *("redecode", "rewrite", "clean"),
)
"""What can happen to a table without making its outputs different from it."""
RETIRING = (*EVENTS, "retire")
"""All that can happen. Outputs keep what they made of retired rows."""
PLACE = ("broker", "partition", "offset", "loaded_at")
SourceRow = tuple[Any, ...]


class Place(NamedTuple):
    """Where a row is from."""

    incarnation: str
    partition: int
    offset: int


class Loaded(NamedTuple):
    """When a row was loaded, and its value."""

    loaded_at: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TableModel:
    """What a version of the table must have: its rows, the places of erased and retired ones, and all its places."""

    covered: frozenset[Place] = frozenset()
    rows: Mapping[Place, Loaded] = field(default_factory=dict)
    erased: frozenset[Place] = frozenset()
    retired: frozenset[Place] = frozenset()

    def with_rows(self, rows: Mapping[Place, Loaded], covered: Collection[Place] = ()) -> "TableModel":
        """The model with these rows, also in the places of others; some places may be `covered` without a row."""
        return replace(self, rows={**self.rows, **rows}, covered=self.covered.union(rows, covered))

    def without(self, places: Collection[Place]) -> "TableModel":
        """The model without the rows in these places."""
        return replace(self, rows={place: row for place, row in self.rows.items() if place not in places})

    def changed(self, now: "TableModel") -> bool:
        """Whether a consumer that has seen all rows of this model has seen rows that were replaced or taken back."""
        gone = now.erased | now.retired
        lost = any(now.rows.get(place) != row for place, row in self.rows.items() if place not in gone)
        topics = {place.incarnation for place in self.covered}
        restarted = any(place.incarnation not in topics for place in now.rows)
        return lost or restarted


class TableHistory(DatedTable):
    """A small table to which something random happens.

    Attributes:
        events: what has happened so far.
        model: what the table must have, if all of its rows were loaded by events.
        erasures: the places of the rows that were erased in a version.
    """

    def __init__(self, root: Path, random: Random) -> None:
        super().__init__(root)
        self.random = random
        self.events: list[str] = []
        self.model = TableModel()
        self.erasures: dict[int, set[Place]] = {}
        self._models = {0: self.model}
        self._days: dict[int, int] = {}
        self._written: dict[int, bytes | None] = {}

    def happen(self, event: str) -> None:
        """Let something happen, if it is possible."""
        self.events.append(event)
        self.today += self.random.randint(0, 1)
        getattr(self, f"_{event}")()
        self._remember(self.model)

    def check(self) -> None:
        """Compare the table with the model, and prove it."""
        rows = self.handle().to_pyarrow_table(columns=[*PLACE, "value"])
        times = rows.column("loaded_at").cast(pa.int64()).to_pylist()
        columns = (rows.column(name).to_pylist() for name in ("partition", "offset", "value"))
        partitions, offsets, values = columns
        there = sorted(zip(partitions, offsets, times, values, strict=True))
        assert there == sorted(self.model_rows()), self.events
        assert self.problems() == (), self.events

    def model_rows(self) -> list[SourceRow]:
        """The partition, offset, loading time and value of each row that the table must have."""
        return [(place.partition, place.offset, *row) for place, row in self.model.rows.items()]

    def source_rows(self) -> list[SourceRow]:
        """The place and the loading time of each row, as any reader sees them."""
        rows = self.handle().to_pyarrow_table(columns=list(PLACE))
        times = rows.column("loaded_at").cast(pa.int64())
        columns = [*(rows.column(name).to_pylist() for name in PLACE[:3]), times.to_pylist()]
        return sorted(zip(*columns, strict=True))

    def write(
        self, start: int, stop: int, *, partition: int = 0, rows: int | None = None, without: Collection[int] = ()
    ) -> SliceFacts:
        """See SmallTable. No row has one of the offsets `without`."""
        offsets = [offset for offset in range(start, stop, 10) if offset not in without][:rows]
        return self.write_values(start, stop, partition, dict.fromkeys(offsets, b"x"), {})

    def write_values(
        self,
        start: int,
        stop: int,
        partition: int,
        values: Mapping[int, bytes | None],
        others: Mapping[str, pa.Array],
    ) -> SliceFacts:
        """Write a slice's file with these values by offset, and with the other columns."""
        columns = {
            "offset": pa.array(list(values), pa.int64()),
            "value": pa.array(list(values.values()), pa.binary()),
            **others,
        }
        facts = self.write_columns(OffsetRange(BrokerPartition(0, partition), start, stop), columns)
        self._days[self._loaded_at], self._written = self.today, dict(values)
        return facts

    def _remember(self, model: TableModel) -> None:
        self.model = self._models[self.table.snapshot().version] = model

    def _place(self, partition: int, offset: int) -> Place:
        return Place(self.topic.incarnation, partition, offset)

    def _places(self, offsets: OffsetRange) -> set[Place]:
        number = offsets.partition.partition
        return {self._place(number, offset) for offset in range(offsets.start, offsets.stop, 10)}

    def _rows_of_slice(self, partition: int) -> dict[Place, Loaded]:
        """The rows of the slice that was written last."""
        values = self._written.items()
        return {self._place(partition, offset): Loaded(self._loaded_at, value) for offset, value in values}

    def _load(self, *, skip: bool = False) -> None:
        covered, facts, model = self.covered(), list[SliceFacts](), self.model
        for number in self.random.sample(range(2), self.random.randint(1, 2)):
            _, start = covered.get(BrokerPartition(0, number), (50, 50 if not covered else 0))
            stop = start + 10 * self.random.randint(1, 6)
            skipped = {offset for offset in range(start, stop, 10) if skip and self.random.random() < 0.5}
            written = self.write(start, stop, partition=number, without=skipped)
            facts.append(self._with_set(written, ExactCause.FILTERED, skipped))
            places = self._places(written.range.offsets)
            model = model.with_rows(self._rows_of_slice(number), places)
        self.commit(*facts)
        self._remember(model)

    def _filter(self) -> None:
        """A load that leaves out records for which the condition `skip` is true."""
        self._load(skip=True)

    def _with_set(self, facts: SliceFacts, cause: ExactCause, offsets: Collection[int]) -> SliceFacts:
        if not offsets:
            return facts
        stored = store_exact(self.uri, {}, rows_of(*sorted(offsets), inner=0))
        gaps = {**facts.range.gaps, cause: len(offsets)}
        return replace(facts, range=replace(facts.range, gaps=gaps, exact={**facts.range.exact, cause: stored}))

    def _backfill(self) -> None:
        for partition, (start, stop) in self.covered().items():
            if 0 < start < stop:
                first = start - 10 * self.random.randint(1, start // 10)
                self.commit(self.write(first, start, partition=partition.partition))
                self._remember(self.model.with_rows(self._rows_of_slice(partition.partition)))

    def _some(self) -> OffsetRange | None:
        covered = [(partition, bounds) for partition, bounds in self.covered().items() if bounds[0] < bounds[1]]
        if not covered:
            return None
        partition, (start, stop) = self.random.choice(covered)
        first = self.random.randrange(start, stop, 10)
        return OffsetRange(partition, first, self.random.randrange(first + 10, stop + 10, 10))

    def _replay(self) -> None:
        """The brokers have all records. Those that were erased or retired must not come back."""
        offsets = self._some()
        if offsets is None:
            return
        number, snapshot = offsets.partition.partition, self.table.snapshot()
        exact = exact_of_slices(self.table, {offsets.partition: self.ranges(number)}, [offsets]).get(offsets, {})
        sets = self.table.exact_sets(CommittedRange(offsets=offsets, exact=exact))
        gone = {
            offset
            for own in sets.values()
            for offset in range(offsets.start, offsets.stop, 10)
            if own.within(replace(offsets, start=offset, stop=offset + 1)).count
        }
        facts = self.write(offsets.start, offsets.stop, partition=number, without=gone)
        gaps = {str(cause): own.count for cause, own in sets.items()}
        facts = replace(facts, range=replace(facts.range, gaps=gaps, exact=exact))
        state = table_state(snapshot, self.topic)
        change = ReplayChange(
            fetched_rows=lambda part: part.rows, state=state, ranges=(offsets,), facts=(facts,), run="replay"
        )
        commit(self.table, snapshot, change)
        there = self._places(offsets)
        assert {self._place(number, offset) for offset in gone} == there & (self.model.erased | self.model.retired)
        self._remember(self.model.with_rows(self._rows_of_slice(number)))

    def _cut(self) -> None:
        offsets = self._some()
        if offsets is None:
            return
        snapshot = self.table.snapshot()
        lost = replace(offsets, stop=self.covered()[offsets.partition][1])
        commit(self.table, snapshot, CutChange(state=table_state(snapshot, self.topic), ranges=(lost,), run="cut"))
        # The log has other records at these offsets now.
        places, model = self._places(lost), self.model
        left = model.without(places)
        self._remember(TableModel(model.covered - places, left.rows, model.erased - places, model.retired - places))

    def _rewind(self) -> None:
        snapshot = self.table.snapshot()
        if snapshot.entry is None:
            return
        target = self.random.randint(1, snapshot.version)
        try:
            rewind(plan_rewind(self.table, target, run="rewind"))
        except RewindRefused:
            return
        entry = self.table.snapshot().entry
        assert entry is not None
        self.topic = entry.topic
        self._remember(self._models[max(version for version in self._models if version <= target)])

    def _erase(self) -> None:
        """Rows of former topics of the same name at these offsets are erased, too."""
        offsets = self._some()
        if offsets is None:
            return
        some = f"offset >= {offsets.start} and offset < {offsets.stop}"
        condition = parse_condition(f"partition = {offsets.partition.partition} and {some}")
        result = erase(EraseRequest(table=self.table, condition=condition, run="erasure"))
        assert result.failure is None, (self.events, result.failure)
        of_all_topics = {place._replace(incarnation="") for place in self._places(offsets)}
        hits = {place for place in self.model.rows if place._replace(incarnation="") in of_all_topics}
        model = self.model.without(hits)
        self._remember(replace(model, erased=model.erased | hits))
        self.erasures[self.table.snapshot().version] = hits

    def _retire(self) -> None:
        """Files with rows of a former topic stay, and so do the other rows in them."""
        before = self.today - self.random.randint(0, 3)
        self.retire(before)
        there = {row[1:] for row in self.source_rows()}
        hits = {place for place, row in self.model.rows.items() if self._days[row.loaded_at] < before}
        if any(place.incarnation != self.topic.incarnation for place in self.model.rows):
            hits = {place for place in hits if (*place[1:], self.model.rows[place].loaded_at) not in there}
        model = self.model.without(hits)
        self._remember(replace(model, retired=model.retired | hits))

    def _compaction(self) -> None:
        clean(self.table, keep=timedelta(days=1), target_bytes=1_000_000, dry_run=False)

    def _clean(self) -> None:
        """Delete all files that only older versions need."""
        clean(self.table, keep=timedelta(0), target_bytes=1, dry_run=False)

    def _rewrite(self) -> None:
        """Store all rows again, with fewer or more headers. Nothing else about them changes."""
        if self.table.snapshot().entry is None:
            return
        headers = self.random.choice([["a"], ["b"], []])
        format_ = TopicFormat.model_validate({"load": {"headers": headers}})
        assert rewrite(RewriteRequest(table=self.table, format=format_, run="rewrite")).failure is None

    def _redecode(self) -> None:
        """Give the rows of some ranges other values, as a redecode does. Their places and loading times stay."""
        snapshot, model = self.table.snapshot(), self.model
        ranges = [part for number in range(2) for part in self.ranges(number) if part.rows] if snapshot.entry else []
        chosen = self.random.sample(ranges, min(len(ranges), 2))
        if not chosen or snapshot.entry is None:
            return
        facts = []
        for part in chosen:
            fact, values = self._decoded_again(snapshot, part)
            facts.append(fact)
            number, loaded = part.partition.partition, part.loaded_at_us
            rows = {self._place(number, offset): Loaded(loaded, value) for offset, value in values.items()}
            model = model.with_rows(rows)
        change = RedecodeChange(
            state=snapshot.entry.state,
            facts=tuple(facts),
            run="redecode",
            columns=snapshot.layout.values,
            table=self.table,
            staged_from=snapshot,
        )
        commit(self.table, snapshot, change)
        self._remember(model)

    def _decoded_again(
        self, snapshot: TableSnapshot, part: CommittedRange
    ) -> tuple[SliceFacts, dict[int, bytes | None]]:
        """The facts of a staged file with the rows of a range and other values, and these values by offset."""
        schema = snapshot.layout.file_schema
        rows = snapshot.opened.dataset().to_table(filter=arrow_filter(part, snapshot.layout)).select(schema.names)
        values: list[bytes | None] = [
            None if value is None else f"again {self.random.random()}".encode()
            for value in rows.column("value").to_pylist()
        ]
        place = schema.get_field_index("value")
        rows = rows.set_column(place, schema.field(place), pa.array(values, pa.binary())).cast(schema)
        path = f"_replays/test/date={day(self._days[part.loaded_at_us])}/{uuid.uuid4().hex}.parquet"
        file = Path(self.uri) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file)
        staged = DataFile(path=path, size=file.stat().st_size, rows=rows.num_rows)
        offsets = rows.column("offset").to_pylist()
        return SliceFacts(range=replace(part, paths=()), files=(staged,)), dict(zip(offsets, values, strict=True))

    def _restart(self) -> None:
        snapshot = self.table.snapshot()
        if snapshot.entry is None:
            return
        topic = replace(self.topic, incarnation=str(1000 + snapshot.version))
        state = table_state(snapshot, topic, choices=Choices(on_recreated="restart"))
        facts = self.write(50, 50 + 10 * self.random.randint(1, 6))
        commit(self.table, snapshot, LoadChange(state=state, facts=(facts,), run="restart"))
        self.topic = topic
        self._remember(self.model.with_rows(self._rows_of_slice(0)))


def without_log(table: SmallTable, *versions: int) -> None:
    """Delete entries of the log, as a clean-up of another program does."""
    for version in versions:
        (Path(table.uri) / "_delta_log" / f"{version:020d}.json").unlink()


def copied(table: SmallTable, folder: Path) -> Path:
    """Copy all files of the table into another folder, which a test can put in place of the table later."""
    return Path(shutil.copytree(table.uri, folder))
