"""Erasures and retirements while loads run. What they take out is random; Penstock's own code makes the changes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import commit
from pipelines.commit.erasure import EraseChange, HitRows, on_newest
from pipelines.commit.retirement import FileRows, RetireChange, RetiredRows
from pipelines.ledger.committed_range import NOWHERE, CommittedRange
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.table.table_store import TableSnapshot
from tests.simulation.removal_law import Condition, RemovalLaw
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import Row, SimStore


@dataclass(slots=True, kw_only=True)
class Removals:
    """Each method takes rows out in one commit and returns a line for the trace, or raises the error of a load."""

    store: SimStore
    scheduler: Scheduler
    law: RemovalLaw

    def erase(self, run: str) -> str:
        """Erase the rows of a random condition. If other runs commit meanwhile, their files are searched too."""
        snapshot = self.store.snapshot()
        rows = [row for own in self.store.files_of(snapshot).values() for row in own]
        if not rows:
            return "there is nothing to erase"
        condition = self.law.conditions[run] = self._condition(rows)

        def attempt(searched: TableSnapshot) -> str:
            change = self._erasure(run, searched, condition)
            self.scheduler.step("erasure staged")
            if change is None:
                return "no row has to be erased"
            return f"version {commit(self.store, searched, change).version} lacks what is erased"

        return on_newest(self.store, snapshot, attempt)

    def _condition(self, rows: Sequence[Row]) -> Condition:
        """A condition for some of the records from a random one on."""
        rng = self.scheduler.rng
        modulus, first = rng.choice((1, 2, 5, 20)), rng.choice((0, rng.choice(rows).payload))
        rest = rng.randrange(modulus)
        return lambda row: row.payload >= first and row.payload % modulus == rest

    def _erasure(self, run: str, snapshot: TableSnapshot, condition: Condition) -> EraseChange | None:
        """The change, whose new files are written; None if no row has to be erased."""
        assert snapshot.entry is not None
        hits: dict[BrokerPartition, list[Row]] = defaultdict(list)
        removed: list[str] = []
        written: list[DataFile] = []
        for path, rows in self.store.files_of(snapshot).items():
            kept = [row for row in rows if not condition(row)]
            if len(kept) == len(rows):
                continue
            removed.append(path)
            for row in filter(condition, rows):
                hits[row.id].append(row)
            if kept:
                new = self.store.stage(kept, self.store.file_columns[path], path.rpartition("/")[0])
                written.append(DataFile(path=new, size=len(kept), rows=len(kept)))
        if not removed:
            return None
        return EraseChange(
            state=snapshot.entry.state,
            facts=(SliceFacts(range=CommittedRange(offsets=NOWHERE), files=tuple(written)),),
            run=run,
            hits={id_: _hit_rows(own) for id_, own in hits.items()},
            removed=tuple(removed),
            request=run,
        )

    def retire(self, run: str) -> str:
        """Take out the files whose rows are all older than a random loading time, and belong to ranges that count."""
        snapshot = self.store.snapshot()
        files = self.store.files_of(snapshot)
        if snapshot.entry is None or not files:
            return "there is nothing to retire"
        times = sorted({row.loaded_at_us for rows in files.values() for row in rows})
        before = self.law.limits[run] = self.scheduler.rng.choice(times)
        ranges = RetiredRows(ranges_of(self.store.entries(snapshot), snapshot.entry.topic))
        chosen = {}
        for path, rows in files.items():
            own = list(_file_rows(rows))
            if all(row.loaded_at_us < before for row in rows) and ranges.take(own):
                chosen[path] = own
        self.scheduler.step("retirement planned")
        if not chosen:
            return "no file has to be retired"
        result = commit(self.store, snapshot, RetireChange(state=snapshot.entry.state, run=run, files=chosen))
        return f"version {result.version} lacks {len(chosen)} old files"


def _hit_rows(rows: Sequence[Row]) -> HitRows:
    offsets, times = np.array([row.offset for row in rows]), np.array([row.loaded_at_us for row in rows])
    return HitRows(offsets, np.zeros_like(offsets), times)


def _file_rows(rows: Sequence[Row]) -> Iterator[FileRows]:
    """The rows of a file, by their partition and loading time."""
    groups: dict[tuple[BrokerPartition, int], list[int]] = defaultdict(list)
    for row in rows:
        groups[row.id, row.loaded_at_us].append(row.offset)
    for (id_, loaded_at_us), of_group in sorted(groups.items()):
        offsets = np.array(sorted(of_group))
        own = ExactOffsets.of(offsets, None if id_.broker is None else np.zeros_like(offsets))
        yield FileRows(id_, loaded_at_us, own, len(offsets))
