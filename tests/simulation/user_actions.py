"""Rewinds and replays by a user while loads run. Their targets are random; Penstock's own code makes the changes."""

from dataclasses import dataclass

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.commit import commit
from pipelines.loading.divergence import check_same_logs
from pipelines.loading.ledger import Coverage
from pipelines.loading.load import Loader
from pipelines.loading.truncation import truncations
from pipelines.loading.work import CommittedRange
from pipelines.maintenance.replay import ReplayChange
from pipelines.maintenance.rewind import RewindChange, restored_state
from tests.simulation.brokers import TOPIC, SimCluster
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import SimStore


@dataclass(slots=True, kw_only=True)
class UserActions:
    """Each method changes the table with one commit and returns a line for the trace, or raises the error of a load."""

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler

    def rewind(self, run: str) -> str:
        """Rewind to a random older version."""
        snapshot = self.store.snapshot()
        if snapshot.entry is None:
            return "there is no commit to rewind"
        target = self.scheduler.rng.randrange(snapshot.version)
        entry = next(
            (ledger_entry for version, ledger_entry in self.store.entries(snapshot) if version <= target), None
        )
        change = RewindChange(
            target=target, state=restored_state(snapshot.entry, entry), seen=snapshot.entry.commit, run=run
        )
        return f"version {commit(self.store, snapshot, change).version} restores version {target}"

    def clean(self) -> str:
        """Delete the files that no version from a random one on contains; other runs happen before each file."""
        before = self.scheduler.rng.randrange(len(self.store.versions))
        unneeded = self.store.announce_clean(before)
        self.scheduler.step("clean announced")
        for path in unneeded:
            self.scheduler.step("file cleaned")
            self.store.deleted.add(path)
        return f"{len(unneeded)} files from before version {before} are deleted"

    def replay(self, loader: Loader) -> str:
        """Replay a random range of one partition, if the brokers hold it."""
        result = self.cluster.topic(TOPIC)
        assert result is not None
        start_time = loader.now()
        planned_on, state = loader.read_table(self.store, result)
        bounds, _ = loader.bounds(result)
        known = sorted(state.covered.keys() & bounds.keys())
        if not known:
            return "nothing to replay"
        interval = self._interval(self.scheduler.rng.choice(known), state.covered)
        bound = bounds[interval.partition]
        if not bound.earliest <= interval.start < interval.stop <= bound.latest:
            return f"the brokers do not have {interval}"
        if truncations(self.cluster, state, bounds).get(interval.partition, interval.stop) < interval.stop:
            return f"{interval} was truncated"
        sizes = loader.slice_sizes(result, [interval], None)
        facts = loader.fetch_slices(
            result, self.store.uri, [interval], start_time, lambda _done, _total: None, sizes=sizes
        )
        if facts[0].failure:
            return str(facts[0].failure)
        check_same_logs(self.cluster, state, bounds)
        self.store.check(facts)
        staged = [row for part in facts for row in self.store.staged.get(part.path or "", ())]

        def fetched_rows(part: CommittedRange) -> int:
            offsets = part.offsets
            return sum(offsets.start <= row.offset < offsets.stop for row in staged)

        change = ReplayChange(
            state=state, ranges=(interval,), facts=tuple(facts), run=loader.run_id, fetched_rows=fetched_rows
        )
        snapshot = self.store.newer(planned_on)
        return f"version {commit(self.store, snapshot, change.rebased(snapshot)).version} has {interval} again"

    def _interval(self, id_: BrokerPartition, covered: Coverage) -> OffsetRange:
        """A range from one row to another or to the cursor; in 0.7 a range can only start and end at messages."""
        start, cursor = covered[id_]
        offsets = sorted({row.offset for row in self.store.rows if row.id == id_ and start <= row.offset < cursor})
        first, last = sorted(self.scheduler.rng.choices([start, *offsets, cursor], k=2))
        return OffsetRange(id_, first, last)
