"""Rewinds and replays by a user while loads run. The choices are simulated, the changes are the product's."""

from dataclasses import dataclass

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.commit import commit
from pipelines.loading.ledger import Coverage, TableState
from pipelines.loading.load import Loader
from pipelines.loading.truncation import truncations
from pipelines.maintenance.replay import ReplayChange
from pipelines.maintenance.rewind import RewindChange
from tests.simulation.brokers import TOPIC, SimCluster
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import SimStore


@dataclass(slots=True, kw_only=True)
class Mending:
    """The methods change the table by one commit, or raise the error that a load would report."""

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler

    def rewind(self, run: str) -> str:
        """Rewind to a random older version."""
        snapshot = self.store.snapshot()
        if snapshot.entry is None:
            return "nothing to take back"
        target = self.scheduler.rng.randrange(snapshot.version)
        entry = next(
            (ledger_entry for version, ledger_entry in self.store.entries(snapshot) if version <= target), None
        )
        restored = TableState(topic=snapshot.entry.topic)
        if entry is not None:
            restored = TableState(topic=entry.topic, covered=entry.covered, epochs=entry.epochs)
        change = RewindChange(target=target, state=restored, seen=snapshot.entry.commit, run=run)
        return f"version {commit(self.store, snapshot, change).version} is version {target}"

    def replay(self, loader: Loader) -> str:
        """Replay a random range of one partition, if the brokers hold it."""
        result = self.cluster.topic(TOPIC)
        assert result is not None
        began = loader.now()
        _, stands = loader.read_table(self.store, result)
        bounds, _ = loader.bounds(result)
        known = sorted(stands.covered.keys() & bounds.keys())
        if not known:
            return "nothing to replay"
        interval = self._interval(self.scheduler.rng.choice(known), stands.covered)
        bound = bounds[interval.partition]
        if not bound.earliest <= interval.start < interval.stop <= bound.latest:
            return f"{interval} is not there"
        if truncations(self.cluster, stands, bounds).get(interval.partition, interval.stop) < interval.stop:
            return f"{interval} is not what it was"
        sizes = loader.slice_sizes(result, [interval], None)
        facts = loader.fetch_slices(result, self.store.uri, [interval], began, lambda _done, _total: None, sizes=sizes)
        if facts[0].failure:
            return str(facts[0].failure)
        self.store.check(facts)
        change = ReplayChange(state=stands, ranges=(interval,), facts=tuple(facts), run=loader.run_id)
        now = self.store.snapshot()
        return f"version {commit(self.store, now, change.rebased(now)).version} has {interval} again"

    def _interval(self, id_: BrokerPartition, covered: Coverage) -> OffsetRange:
        """A range between two rows, or up to the cursor: in 0.7 a message starts at no other offset."""
        start, cursor = covered[id_]
        offsets = sorted({row.offset for row in self.store.rows if row.id == id_ and start <= row.offset < cursor})
        first, last = sorted(self.scheduler.rng.choices([start, *offsets, cursor], k=2))
        return OffsetRange(id_, first, last)
