"""Rewinds and replays: what a user does to a table while loads go on. Choosing is simulated, the changes are real."""

from dataclasses import dataclass

from kafka_io.model import BrokerPartition
from pipelines.loading.commit import commit
from pipelines.loading.ledger import Covered, Standing
from pipelines.loading.load import Loader
from pipelines.loading.parting import partings
from pipelines.loading.pieces import Interval
from pipelines.loading.slices import Slice
from pipelines.mending.replay import replaying
from pipelines.mending.rewind import Rewinding
from tests.simulation.brokers import TOPIC, SimCluster
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import SimStore


@dataclass(slots=True, kw_only=True)
class Mending:
    """Each changes the table by one commit, or raises what a load would tell as its error."""

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler

    def rewind(self, run: str) -> str:
        """Back to any version that there ever was."""
        at = self.store.snapshot()
        if at.entry is None:
            return "nothing to take back"
        target = self.scheduler.rng.randrange(at.version)
        entry = next((one for version, one in self.store.entries(at) if version <= target), None)
        back = Standing(topic=at.entry.topic)
        if entry is not None:
            back = Standing(topic=entry.topic, covered=entry.covered, epochs=entry.epochs)
        change = Rewinding(target=target, back=back, over=at.entry.commit, run=run)
        return f"version {commit(self.store, at, change).version} is version {target}"

    def replay(self, loader: Loader) -> str:
        """An interval of one partition, if the brokers hold it."""
        found = self.cluster.topic(TOPIC)
        assert found is not None
        began = loader.now()
        _, stands = loader.stands(self.store, found)
        bounds, _ = loader.bounds(found)
        known = sorted(stands.covered.keys() & bounds.keys())
        if not known:
            return "nothing to replay"
        interval = self._interval(self.scheduler.rng.choice(known), stands.covered)
        bound = bounds[interval.id]
        if not bound.earliest <= interval.start < interval.stop <= bound.latest:
            return f"{interval} is not there"
        if partings(self.cluster, stands, bounds).get(interval.id, interval.stop) < interval.stop:
            return f"{interval} is not what it was"
        slices = [Slice(id=interval.id, start=interval.start, stop=interval.stop)]
        sizes = loader.sizes(found, slices, None)
        facts = loader.fetched(found, self.store.uri, slices, began, lambda _done, _total: None, sizes=sizes)
        if facts[0].failure:
            return str(facts[0].failure)
        self.store.check(facts)
        change = replaying(stands, [interval], facts, run=loader.run_id)
        now = self.store.snapshot()
        return f"version {commit(self.store, now, change.onto(now)).version} has {interval} anew"

    def _interval(self, id_: BrokerPartition, covered: Covered) -> Interval:
        """Between any two rows, for in 0.7 a message starts at no other offset; up to the cursor at most."""
        start, cursor = covered[id_]
        offsets = sorted({row.offset for row in self.store.rows if row.id == id_ and start <= row.offset < cursor})
        first, last = sorted(self.scheduler.rng.choices([start, *offsets, cursor], k=2))
        return Interval(id=id_, start=first, stop=last)
