"""A small table in memory, made by hand, with the same ways as `SmallTable`, which is a real one."""

from collections.abc import Callable

from kafka_io.model import BrokerPartition
from pipelines.loading.work import Facts
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import Row, SimStore
from tests.small_table import Small


class SmallStore(Small):
    """One in memory."""

    table: SimStore

    def __init__(self, scheduler: Scheduler, *, store: Callable[..., SimStore] = SimStore) -> None:
        super().__init__()
        self.table = store(scheduler=scheduler)

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

    def rows(self) -> int:
        """The rows any reader sees."""
        return len(self.table.rows)

    def compact(self) -> None:
        """Small files become one, in a commit that is not Penstock's."""
        self.table.compact()
