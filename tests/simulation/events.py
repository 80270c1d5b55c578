"""Random events: in the logs of the topic, at its brokers, in the store of the table, and by its other writers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kafka_io.model import BrokerPartition
from tests.simulation.brokers import SimCluster
from tests.simulation.scheduler import Scheduler
from tests.simulation.sim_log import SimLog
from tests.simulation.store import SimStore

_MAX_PARTITIONS = 6


@dataclass(slots=True, kw_only=True)
class Events:
    """Chooses events by chance. `cleaners` are suspended runs of housekeeping; the next step of each deletes a file.

    If `rebuilds`, another cluster can take the place of the present one. If `restores`, the disks of brokers are
    copied, and put back to these copies. If `deposes`, leaders that were deposed in unclean elections still answer.
    `favours` multiplies the weights of events, by their names.
    """

    cluster: SimCluster
    store: SimStore
    scheduler: Scheduler
    cleaners: list[Iterator[str]]
    rebuilds: bool = False
    restores: bool = False
    deposes: bool = False
    favours: Mapping[str, float] = field(default_factory=dict)
    copies: dict[BrokerPartition, tuple[SimLog, SimLog]] = field(default_factory=dict)

    def happen(self) -> None:
        """Let one random event happen."""
        odds = {
            self._send: 10,
            self._expire: 2,
            self._compact_log: 1 if self.cluster.compacts and not self.cluster.era.in_bytes else 0,
            self._lose_records: 0 if self.cluster.era.in_bytes else 0.3,
            self._damage: 0.4,
            self._elect: 2,
            self._cut: 0 if self.cluster.era.in_bytes else 1.5,
            self._add_partition: 0.4,
            self._recreate: 1.2 if self.scheduler.depth else 0.3,
            self._replace_logs: 0.3 if self.cluster.era.in_bytes else 0,
            self._exchange_address: 0 if self.cluster.era.in_bytes else 0.3,
            self._upgrade: 0.1,
            self._broker_leaves: 1 if self.cluster.era.in_bytes else 0,
            self._lose_leader: 0 if self.cluster.era.in_bytes else 1,
            self._fill: 5 if self.store.full else 0.3,
            self.store.compact: 1,
            self.store.delete_rows: 0.2,
            self.store.add_deletion_vectors: 0.1,
            self.store.allow_log_cleanup: 0.1,
            self.store.clean_log: 0.1,
            self.store.repair: 3 if self.store.foreign else 0,
            self.store.remove: 0.2,
            self.store.arrive: 3,
            self._resume_cleaner: 1 if self.cleaners else 0,
            self._change_schema: 2 if self.cluster.values else 0,
            self._publish_schemas: 2 if self.cluster.values and self.cluster.values.late else 0,
            self._rebuild: (1.5 if self.scheduler.depth else 0.5) if self.rebuilds else 0,
            self._copy: 2 if self.restores else 0,
            self._put_back: 1.5 if self.restores and self.copies else 0,
            self._depose: 1.5 if self.deposes else 0,
            self._transaction: 1.5 if self.cluster.times and not self.cluster.era.in_bytes else 0,
        }
        weights = [weight * self.favours.get(event.__name__.lstrip("_"), 1) for event, weight in odds.items()]
        [event] = self.scheduler.rng.choices(list(odds), weights=weights)
        event()

    def calm(self) -> None:
        """Bring all brokers back, make room in the store, and let delayed writes and suspended cleaners end."""
        self.store.full = False
        while self.cleaners:
            self._resume_cleaner()
        self.store.repair()
        self.cluster.away = set()
        self.cluster.leaderless = set()
        self.cluster.known_to_lagging = None
        self.cluster.deposed = {}
        for log in self.cluster.logs.values():
            log.open_from = None
        while self.store.late:
            self.store.arrive()
        if self.cluster.values:
            self._publish_schemas()

    def _random_log(self) -> tuple[BrokerPartition, SimLog]:
        return self.scheduler.rng.choice(list(self.cluster.logs.items()))

    def _send(self) -> None:
        self._send_to(self._random_log()[0])

    def _expire(self) -> None:
        id_, log = self._random_log()
        log.expire(self.scheduler.rng.randint(log.earliest, log.latest))
        self.scheduler.note(f"{id_} begins at {log.earliest}")

    def _compact_log(self) -> None:
        """Compaction removes a few records, or nearly all of them."""
        id_, log = self._random_log()
        numbers = [self.scheduler.rng.random() for _ in log.records]
        share = 0.95 if numbers and numbers[0] < 0.3 else 0.2
        log.compact([offset for offset, number in zip(list(log.records), numbers, strict=True) if number < share])
        self.scheduler.note(f"{id_} is compacted")

    def _lose_records(self) -> None:
        id_, log = self._random_log()
        start, stop = sorted(self.scheduler.rng.randint(log.earliest, log.latest) for _ in range(2))
        log.lose(start, stop)
        self.scheduler.note(f"{id_} loses [{start}, {stop})")

    def _damage(self) -> None:
        id_, log = self._random_log()
        if log.records:
            setting = self.scheduler.rng.choice(("on_corrupt", "on_too_large"))
            damage = log.damage(self.scheduler.rng.choice(list(log.records)), self.scheduler.rng.randint(1, 3), setting)
            self.scheduler.note(f"{id_} cannot be read: {damage}")

    def _resume_cleaner(self) -> None:
        """A suspended housekeeping deletes its next file; without one it ends."""
        cleaner = self.scheduler.rng.choice(self.cleaners)
        deleted = next(cleaner, None)
        if deleted is None:
            self.cleaners.remove(cleaner)
        self.scheduler.note(f"a suspended clean deletes {deleted}")

    def _change_schema(self) -> None:
        assert self.cluster.values is not None
        self.scheduler.note(self.cluster.values.change())

    def _publish_schemas(self) -> None:
        assert self.cluster.values is not None
        self.cluster.values.publish()
        self.scheduler.note("the registry has all schemas")

    def _elect(self) -> None:
        id_, log = self._random_log()
        log.elect()
        self.scheduler.note(f"{id_} has leader epoch {log.epoch} from offset {log.latest}")
        self._send_to_new_leader(id_)

    def _cut(self) -> None:
        id_, log = self._random_log()
        self.scheduler.tick += 1
        log.cut(self.scheduler.rng.randint(log.earliest, log.latest), self.scheduler.tick)
        self.scheduler.note(f"{id_} is cut at {log.latest}")
        self._send_to_new_leader(id_)

    def _copy(self) -> None:
        """Copy the disk of a broker. In half of the cases another leader follows, so the copy has an older epoch."""
        id_, log = self._random_log()
        self.copies[id_] = (log, log.copy())
        self.scheduler.note(f"the disk of {id_} is copied in epoch {log.epoch}, up to {log.latest}")
        if self.scheduler.rng.random() < 0.5:
            log.elect()
            self._send_to_new_leader(id_)

    def _put_back(self) -> None:
        """Put a disk back to its copy. The epoch after that can be lower, equal or higher.

        In half of the cases it is equal, if that is possible, and the log becomes as long as it was (fault A02).
        """
        rng = self.scheduler.rng
        id_ = rng.choice(sorted(self.copies))
        log, older = self.copies.pop(id_)
        if self.cluster.logs.get(id_) is not log:  # the topic was created again
            return
        self.scheduler.tick += 1
        self.cluster.restores += 1
        self.cluster.deposed.pop(id_, None)
        epochs, length = log.epoch - older.epoch, log.latest
        restarts = epochs if epochs > 0 and rng.random() < 0.5 else rng.randint(1, 3)
        log.put_back(older, self.scheduler.tick, restarts=restarts)
        self.scheduler.note(f"the disk of {id_} is put back: epoch {log.epoch} from {log.latest} on")
        self._send_to_new_leader(id_)
        if rng.random() < 0.5:
            self._grow_to(id_, length)

    def _depose(self) -> None:
        """An unclean election. The deposed leader does not know it, and still answers.

        In half of the cases the log becomes as long as it was.
        """
        id_, log = self._random_log()
        length = log.latest
        self.cluster.deposed[id_] = (log.copy(), self.scheduler.tick)
        self.scheduler.tick += 1
        log.cut(self.scheduler.rng.randint(log.earliest, log.latest), self.scheduler.tick)
        self.scheduler.note(f"{id_} is cut at {log.latest}, and its deposed leader still answers")
        self._send_to_new_leader(id_)
        if self.scheduler.rng.random() < 0.5:
            self._grow_to(id_, length)

    def _send_to_new_leader(self, id_: BrokerPartition) -> None:
        """In most cases the new leader gets records immediately."""
        if self.scheduler.rng.random() < 0.6:
            self._send_to(id_)

    def _send_to(self, id_: BrokerPartition) -> None:
        self.cluster.send(id_, self.scheduler.rng.randint(1, 40))
        self.scheduler.note(f"{id_} grows to {self.cluster.logs[id_].latest}")

    def _add_partition(self) -> None:
        if len(self.cluster.logs) < _MAX_PARTITIONS:
            self.cluster.add_partition()
            self.scheduler.note(f"{len(self.cluster.logs)} partitions")

    def _recreate(self) -> None:
        lengths = self._lengths()
        self.cluster.recreate(self.scheduler.rng.randint(1, 4))
        self._fill_again(lengths)
        self.scheduler.note(f"the topic is created again as {self.cluster.incarnation}")

    def _rebuild(self) -> None:
        """Another cluster takes the place of this one: a new one, or one that was restored with its topics."""
        self.cluster.cluster_number += 1
        if self.scheduler.rng.random() < 0.5:
            self._recreate()
        self.scheduler.note(f"the address leads to the cluster {self.cluster.present_id}")

    def _replace_logs(self) -> None:
        lengths = self._lengths()
        self.cluster.replace_logs()
        self._fill_again(lengths)
        self.scheduler.note(f"all logs are created again as {self.cluster.incarnation}, and the topic's node stays")

    def _lengths(self) -> dict[BrokerPartition, int]:
        return {id_: log.latest for id_, log in self.cluster.logs.items()}

    def _fill_again(self, lengths: Mapping[BrokerPartition, int]) -> None:
        """Send records to most of the new logs, often until they are as long as the old ones (fault B06)."""
        as_long = self.scheduler.rng.random() < 0.5
        for id_ in self.cluster.logs:
            if self.scheduler.rng.random() < 0.8:
                self._send_to(id_)
                self._grow_to(id_, lengths.get(id_, 0) if as_long else 0)

    def _grow_to(self, id_: BrokerPartition, length: int) -> None:
        """Send records until the log is at least as long."""
        while self.cluster.logs[id_].latest < length:
            self._send_to(id_)

    def _exchange_address(self) -> None:
        """Exchange `zookeeper` and `bootstrap` in the settings."""
        self.cluster.through_zookeeper = not self.cluster.through_zookeeper
        self.scheduler.note(f"through ZooKeeper: {self.cluster.through_zookeeper}")

    def _transaction(self) -> None:
        """A transaction begins at the end of a log, or the open one ends."""
        id_, log = self._random_log()
        log.open_from = log.latest if log.open_from is None else None
        self.scheduler.note(f"{id_} has an open transaction from {log.open_from} on")

    def _upgrade(self) -> None:
        self.cluster.upgrade()
        self.scheduler.note(f"brokers of {self.cluster.era.name}")

    def _broker_leaves(self) -> None:
        """A broker leaves or comes back; a broker of 0.7 takes its partitions with it."""
        number = self.scheduler.rng.randint(0, 1)
        self.cluster.away ^= {id_ for id_ in self.cluster.logs if id_.broker == number}
        self.scheduler.note(f"partitions that are away: {[str(partition) for partition in sorted(self.cluster.away)]}")

    def _lose_leader(self) -> None:
        """A partition loses its leader, or has one again."""
        id_, _ = self._random_log()
        self.cluster.leaderless ^= {id_}
        self.scheduler.note(
            f"partitions without a leader: {[str(partition) for partition in sorted(self.cluster.leaderless)]}"
        )

    def _fill(self) -> None:
        """The store becomes full, or has room again."""
        self.store.full = not self.store.full
        self.scheduler.note("the store is full" if self.store.full else "the store has room")
