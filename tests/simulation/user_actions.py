"""Rewinds and replays by a user while loads run. Their targets are random; Penstock's own code makes the changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.bad_records import check_records
from pipelines.commit.commit import commit
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.slice_fetcher import FetchOrder
from pipelines.identity.divergence import check_same_logs
from pipelines.identity.truncation import truncations
from pipelines.layout.columns import NO_COLUMNS
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import ranges_of
from pipelines.ledger.ledger import Coverage
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.load.discovered import open_table, with_errors_apart
from pipelines.load.load import Loader
from pipelines.maintenance.rewind import RewindChange, restored_state
from pipelines.rewrites.exact_slices import exact_of_slices
from pipelines.rewrites.redecode import RedecodeChange
from pipelines.rewrites.replay import ReplayChange
from pipelines.table.table_store import TableSnapshot
from resources.errors import ErasedSince, LoadError
from tests.simulation.brokers import TOPIC, SimCluster
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import SimStore

if TYPE_CHECKING:
    from pipelines.delta.delta_table import DeltaLakeTable

_SUSPENDED = 0.5
"""The share of cleans that are suspended."""


@dataclass(slots=True, kw_only=True)
class UserActions:
    """Each method changes the table with one commit and returns a line for the trace, or raises the error of a load.

    `cleaners` are the suspended runs of housekeeping.
    """

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler
    cleaners: list[Iterator[str]]

    def rewind(self, run: str) -> str:
        """Rewind to a random older version."""
        snapshot = self.store.snapshot()
        if snapshot.entry is None:
            return "there is no commit to rewind"
        return self._rewind(run, snapshot, self.scheduler.rng.randrange(snapshot.version))

    def _rewind(self, run: str, snapshot: TableSnapshot, target: int) -> str:
        assert snapshot.entry is not None
        entry = next(
            (ledger_entry for version, ledger_entry in self.store.entries(snapshot) if version <= target), None
        )
        change = RewindChange(
            target=target, state=restored_state(snapshot.entry, entry), known_commit=snapshot.entry.commit, run=run
        )
        return f"version {commit(self.store, snapshot, change).version} restores version {target}"

    def clean(self) -> str:
        """Delete the files that no version from a random one on contains. Other runs happen before each file.

        By chance the clean is suspended after its announcement, and deletes the files on later days.
        """
        tables, before = self.store.tables, self.scheduler.rng.randrange(len(self.store.versions))
        unneeded = self.store.unneeded(before)
        self.scheduler.step("before clean")
        if tables != self.store.tables:
            return "the table was removed"
        self.store.announce_clean(before)
        self.scheduler.step("clean announced")
        if tables != self.store.tables:
            return "the table was removed"
        # A rewind may have brought back files before the announcement.
        deleting = self._deleted(sorted(unneeded & self.store.unneeded(before)))
        if self.scheduler.rng.random() < _SUSPENDED:
            self.cleaners.append(deleting)
            return "suspended"
        deleted = 0
        for _ in deleting:
            deleted += 1
            self.scheduler.step("file cleaned")
        return f"{deleted} files from before version {before} are deleted"

    def _deleted(self, paths: Sequence[str]) -> Iterator[str]:
        for path in paths:
            self.store.deleted.add(path)
            yield path

    def restore_rows(self, run: str) -> str:
        """Rewind to the newest version without lost rows whose files are all there, as the error of a load says.

        If rows were erased since, the table cannot be repaired, and is removed.
        """
        snapshot = self.store.snapshot()
        assert snapshot.entry is not None
        whole = [number for number, version in enumerate(self.store.versions) if not version.lost]
        target = next(number for number in reversed(whole) if self._is_restorable(snapshot, number))
        try:
            return self._rewind(run, snapshot, target)
        except ErasedSince as refused:
            self.store.remove()
            return str(refused)

    def _is_restorable(self, snapshot: TableSnapshot, target: int) -> bool:
        try:
            self.store.check_restorable(snapshot, target)
        except LoadError:
            return False
        return True

    def replay(self, loader: Loader) -> str:
        """Replay a random range of one partition, if the brokers hold it."""
        result = self.cluster.topic(TOPIC)
        assert result is not None
        run = loader.run
        start_time = run.now()
        planned_on, state = open_table(run, self.store, result, name=TOPIC)
        bounds, _ = with_errors_apart(run.cluster.bounds(TOPIC, list(result.partitions)))
        known = sorted(state.covered.keys() & bounds.keys())
        if not known:
            return "nothing to replay"
        interval = self._interval(self.scheduler.rng.choice(known), state.covered)
        bound = bounds[interval.partition]
        if not bound.earliest <= interval.start < interval.stop <= bound.latest:
            return f"the brokers do not have {interval}"
        if state.with_older_leader({interval.partition: bound}):
            return f"a deposed leader answers about {interval}"
        truncated = truncations(self.cluster, state, bounds)
        epoch = truncated.get(interval.partition)
        if epoch and (epoch.end is None or epoch.end < interval.stop):
            return f"{interval} was truncated"
        sizes = run.fetcher.slice_sizes(result, [interval], None)
        ranges = ranges_of(self.store.logged_entries(planned_on.version), state.topic)
        own = [committed for committed in ranges if committed.partition == interval.partition]
        format_ = run.topics.format_of(TOPIC)
        decoding = Decoding(format_, planned_on, run.topics.open_registry)
        order = FetchOrder(
            topic=result.with_ids(state.ids),
            table_uri=self.store.uri,
            slices=[interval],
            epochs={interval.partition: bound.epoch},
            began=start_time,
            sizes=sizes,
            exact=exact_of_slices(self.store, {interval.partition: own}, [interval]),
        )
        facts = run.fetcher.fetch_decoded(order, decoding)
        for failure in (slice_facts.failure for slice_facts in facts if slice_facts.failure):
            return str(failure)
        same_logs = {partition: bound for partition, bound in bounds.items() if partition not in truncated}
        check_same_logs(self.cluster, state, same_logs)
        check_records(format_, facts, state.topic.where)
        self.store.check(facts)
        staged = [row for part in facts for file in part.files for row in self.store.staged.get(file.path, ())]

        def fetched_rows(part: CommittedRange) -> int:
            offsets = part.offsets
            return sum(offsets.start <= row.offset < offsets.stop for row in staged)

        change = ReplayChange(
            state=state,
            ranges=(interval,),
            facts=tuple(facts),
            run=run.id,
            fetched_rows=fetched_rows,
            columns=decoding.plan.stored if decoding.plan else NO_COLUMNS,
            schemas=decoding.schema_ids,
        )
        snapshot = self.store.newer(planned_on)
        return f"version {commit(self.store, snapshot, change.rebased(snapshot)).version} has {interval} again"

    def redecode(self, run: str) -> str:
        """Write the rows of a random range again, as if their values were decoded again."""
        snapshot = self.store.snapshot()
        if snapshot.entry is None:
            return "there is nothing to decode again"
        ranges = ranges_of(self.store.entries(snapshot), snapshot.entry.topic)
        committed = self.scheduler.rng.choice([committed for committed in ranges if committed.rows] or [None])
        rows = self.store.rows_of(snapshot, committed) if committed else []
        if committed is None or not rows:
            return "there is no row to decode again"
        columns = self.store.versions[snapshot.version].columns
        file = DataFile(
            path=self.store.stage(rows, columns, "_replays/date=2026-01-01"), size=len(rows), rows=len(rows)
        )
        written = CommittedRange(offsets=committed.offsets, rows=len(rows), loaded_at_us=committed.loaded_at_us)
        self.scheduler.step("redecode staged")
        change = RedecodeChange(
            state=snapshot.entry.state,
            facts=(SliceFacts(range=written, files=(file,)),),
            run=run,
            columns=columns,
            table=cast("DeltaLakeTable", self.store),
            staged_from=snapshot,
        )
        return f"version {commit(self.store, snapshot, change).version} has {committed} decoded again"

    def _interval(self, id_: BrokerPartition, covered: Coverage) -> OffsetRange:
        """A range from one row to another or to the cursor; in 0.7 a range can only start and end at messages."""
        start, cursor = covered[id_]
        offsets = sorted({row.offset for row in self.store.rows if row.id == id_ and start <= row.offset < cursor})
        first, last = sorted(self.scheduler.rng.choices([start, *offsets, cursor], k=2))
        return OffsetRange(id_, first, last)
