"""A topic with 50,000 partitions, of which 3 hold records: the others cost no slice, no fetch and no ledger range."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from kafka_io.model import BrokerPartition
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.plan.positions import NamedPosition, TimePosition
from pipelines.plan.window import LoadWindow
from pipelines.reports.outcome import TopicLoad
from resources.progress import Progress
from tests.fakes.loaders import simple_loader
from tests.simulation.brokers import TOPIC, SimCluster
from tests.simulation.scheduler import Odds, Scheduler
from tests.simulation.sim_log import ERAS
from tests.simulation.store import SimStore
from tests.simulation.workers import SimWorkers

MANY = 50_000
BUSY = tuple(BrokerPartition(None, number) for number in (0, 20_000, 49_999))


@dataclass(slots=True)
class Many:
    """The topic, its table, and which partitions each fetch was of."""

    cluster: SimCluster
    store: SimStore
    fetched: list[list[BrokerPartition]] = field(default_factory=list)

    def send(self) -> None:
        """Ten records for each of the three."""
        for id_ in BUSY:
            self.cluster.send(id_, 10)

    def load(self, window: LoadWindow) -> TopicLoad:
        """A load that ends well."""
        workers = SimWorkers(cluster=self.cluster, store=self.store, scheduler=self.cluster.scheduler)

        def fetch(works: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
            self.fetched.append([task.offsets.partition for task in works])
            return workers.fetch(works, on_progress)

        loader = simple_loader(self.cluster, self.store, fetch, window=window, now=self.cluster.scheduler.now)
        result = loader.load(TOPIC)
        assert result.error is None
        return result

    @property
    def entry(self) -> LedgerEntry:
        """The newest of the table."""
        entry = self.store.peek().entry
        assert entry is not None
        return entry


def made(partitions: int) -> Many:
    scheduler = Scheduler(rng=random.Random(0), odds=Odds.calm())
    cluster = SimCluster(scheduler=scheduler, era=ERAS[-1])
    cluster.recreate(partitions)
    return Many(cluster, SimStore(scheduler=scheduler))


@pytest.mark.slow
def test_empty_partitions_cost_nothing() -> None:  # fault S10
    many = made(MANY)
    for window in (LoadWindow(since=TimePosition(5)), LoadWindow()):
        many.send()
        result = many.load(window)
        assert (result.files, len(result.partitions)) == (3, 3)
        assert len(many.entry.ranges) == 3
    assert many.entry.covered.keys() == set(BUSY)
    assert many.fetched == [list(BUSY)] * 2


@pytest.mark.slow
def test_a_table_that_begins_at_the_latest_offset_records_no_empty_partition() -> None:  # fault S10
    many = made(MANY)
    many.send()
    many.load(LoadWindow(since=NamedPosition.LATEST))
    assert [committed.partition for committed in many.entry.ranges] == list(BUSY)
    assert many.fetched == []
