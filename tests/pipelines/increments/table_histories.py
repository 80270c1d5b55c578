"""Random histories of a real table: loads, backfills, replays, cuts, rewinds, compactions and recreated topics."""

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import LoadChange, commit
from pipelines.commit.replacement import CutChange
from pipelines.identity.identity import table_state
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.replay import ReplayChange
from resources.errors import RewindRefused
from resources.settings.choices import Choices
from tests.small_table import SmallTable

EVENTS = ("load", "load", "load", "backfill", "replay", "cut", "rewind", "compaction", "restart", "erase")
PLACE = ("broker", "partition", "offset", "loaded_at")
SourceRow = tuple[Any, ...]


class TableHistory(SmallTable):
    """A small table to which something random happens."""

    def __init__(self, root: Path, random: Random) -> None:
        super().__init__(root)
        self.random = random
        self.events: list[str] = []

    def happen(self, event: str) -> None:
        """Let something happen, if it is possible."""
        self.events.append(event)
        getattr(self, f"_{event}")()

    def source_rows(self) -> list[SourceRow]:
        """The place and the loading time of each row, as any reader sees them."""
        rows = self.handle().to_pyarrow_table(columns=list(PLACE))
        times = rows.column("loaded_at").cast(pa.int64())
        columns = [*(rows.column(name).to_pylist() for name in PLACE[:3]), times.to_pylist()]
        return sorted(zip(*columns, strict=True))

    def _load(self) -> None:
        covered = self.covered()
        facts = []
        for number in self.random.sample(range(2), self.random.randint(1, 2)):
            _, stop = covered.get(BrokerPartition(0, number), (50, 50 if not covered else 0))
            facts.append(self.write(stop, stop + 10 * self.random.randint(1, 6), partition=number))
        self.commit(*facts)

    def _backfill(self) -> None:
        for partition, (start, stop) in self.covered().items():
            if 0 < start < stop:
                first = start - 10 * self.random.randint(1, start // 10)
                self.commit(self.write(first, start, partition=partition.partition))

    def _some(self) -> OffsetRange | None:
        covered = [(partition, bounds) for partition, bounds in self.covered().items() if bounds[0] < bounds[1]]
        if not covered:
            return None
        partition, (start, stop) = self.random.choice(covered)
        first = self.random.randrange(start, stop, 10)
        return OffsetRange(partition, first, self.random.randrange(first + 10, stop + 10, 10))

    def _has_erased(self, offsets: OffsetRange) -> bool:
        """Whether rows with some of the offsets were erased."""
        ranges = (part for _, entry in self.table.entries(self.table.snapshot()) for part in entry.ranges)
        return any(part.exact and part.offsets.intersection(offsets) for part in ranges)

    def _replay(self) -> None:
        offsets = self._some()
        if offsets is None or self._has_erased(offsets):
            return
        facts = self.write(offsets.start, offsets.stop, partition=offsets.partition.partition)
        snapshot = self.table.snapshot()
        state = table_state(snapshot, self.topic)
        change = ReplayChange(
            fetched_rows=lambda part: part.rows, state=state, ranges=(offsets,), facts=(facts,), run="replay"
        )
        commit(self.table, snapshot, change)

    def _cut(self) -> None:
        offsets = self._some()
        if offsets is None:
            return
        stop = self.covered()[offsets.partition][1]
        snapshot = self.table.snapshot()
        ranges = (OffsetRange(offsets.partition, offsets.start, stop),)
        commit(self.table, snapshot, CutChange(state=table_state(snapshot, self.topic), ranges=ranges, run="cut"))

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

    def _erase(self) -> None:
        """Rows of a former topic of the same name are refused; then nothing happens."""
        offsets = self._some()
        if offsets is None:
            return
        some = f"offset >= {offsets.start} and offset < {offsets.stop}"
        condition = parse_condition(f"partition = {offsets.partition.partition} and {some}")
        erase(EraseRequest(table=self.table, condition=condition, run="erasure"))

    def _compaction(self) -> None:
        clean(self.table, keep=timedelta(days=1), target_bytes=1_000_000, dry_run=False)

    def _restart(self) -> None:
        snapshot = self.table.snapshot()
        if snapshot.entry is None:
            return
        topic = replace(self.topic, incarnation=str(1000 + snapshot.version))
        state = table_state(snapshot, topic, choices=Choices(on_recreated="restart"))
        facts = self.write(50, 50 + 10 * self.random.randint(1, 6))
        commit(self.table, snapshot, LoadChange(state=state, facts=(facts,), run="restart"))
        self.topic = topic


def without_log(table: SmallTable, *versions: int) -> None:
    """Delete entries of the log, as a clean-up of another program does."""
    for version in versions:
        (Path(table.uri) / "_delta_log" / f"{version:020d}.json").unlink()


def copied(table: SmallTable, folder: Path) -> Path:
    """Copy all files of the table into another folder, which a test can put in place of the table later."""
    return Path(shutil.copytree(table.uri, folder))
