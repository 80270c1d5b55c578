"""A small table in memory, made by hand, with the same ways as `SmallTable`, which is a real one."""

from collections.abc import Callable

from kafka_io.model import BrokerPartition
from pipelines.loading.commit import Committed, Loading, commit
from pipelines.loading.ledger import Topic
from pipelines.loading.standing import standing
from pipelines.loading.table_log import Snapshot, TableLog
from pipelines.loading.work import Facts
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import Row, SimStore


class SmallStore:
    """The table of topic `clicks`, whose messages take ten bytes of log each."""

    def __init__(self, scheduler: Scheduler, *, store: Callable[..., SimStore] = SimStore) -> None:
        self.topic = Topic(cluster="main", name="clicks", incarnation="7")
        self.table = store(scheduler=scheduler)
        self._times = 0

    def write(self, start: int, stop: int, *, partition: int = 0, rows: int | None = None) -> Facts:
        """One slice's file with a row per ten bytes."""
        self._times += 1
        id_ = BrokerPartition(0, partition)
        held = [Row(id_, offset, self._times, offset) for offset in list(range(start, stop, 10))[:rows]]
        return Facts(
            broker=0,
            partition=partition,
            start=start,
            stop=stop,
            rows=len(held),
            bytes=stop - start,
            path=self.table.stage(held) if held else None,
            size=len(held),
            loaded_at_us=self._times,
        )

    def loading(self, *facts: Facts, at: Snapshot | None = None, run: str = "run") -> Loading:
        """What a load would do about `facts`, planned on `at`."""
        return Loading(standing=standing(at or self.table.snapshot(), self.topic), facts=facts, run=run)

    def commit(
        self, *facts: Facts, at: Snapshot | None = None, run: str = "run", log: TableLog | None = None
    ) -> Committed:
        """Commit `facts`, planned on `at` or on the newest version."""
        at = at or self.table.snapshot()
        return commit(log or self.table, at, self.loading(*facts, at=at, run=run), rest=lambda _: None)

    def covered(self) -> dict[BrokerPartition, tuple[int, int]]:
        """What the newest version covers."""
        return dict(standing(self.table.snapshot(), self.topic).covered)

    def rows(self) -> int:
        """The rows any reader sees."""
        return len(self.table.rows)

    def compact(self) -> None:
        """Small files become one, in a commit that is not Penstock's."""
        self.table.compact()
