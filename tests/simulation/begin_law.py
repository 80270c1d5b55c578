"""The law where a table begins in each partition: it leaves out no record that the log held when it could be asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_io.model import BrokerPartition
from pipelines.ledger.ledger import CommitKind, Coverage, LedgerEntry
from pipelines.plan.positions import NamedPosition, TimePosition, WindowEdge
from tests.simulation.broken import require
from tests.simulation.brokers import SimCluster, TrueBounds
from tests.simulation.identity_law import IdentityLaw
from tests.simulation.sim_log import SimLog
from tests.simulation.store import SimStore

_EARLIEST = (None, NamedPosition.EARLIEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """The task of a run, and the content of the logs when it asked the brokers.

    Args:
        tick: when the run began.
        time_ms: the same, in milliseconds since 1970.
        since: where a new table begins.
        has_window: whether the user gave `since` for this run.
        asked: the true bounds of each partition when a broker first answered the run.
    """

    tick: int
    time_ms: int
    since: WindowEdge | None
    has_window: bool
    asked: Mapping[BrokerPartition, TrueBounds]

    def allows(self, start: int, id_: BrokerPartition, log: SimLog) -> bool:
        """Whether a table that this run began leaves out no record that a log held or got later, up to `start`."""
        asked = self.asked.get(id_)
        if self.since in _EARLIEST:
            return start <= (asked.earliest if asked else 0)
        if isinstance(self.since, TimePosition):
            return start <= log.first_kept(self.since.ms, asked.earliest if asked else 0)
        if asked:
            return start <= asked.latest
        return start <= log.first_kept(min(answer.time_ms for answer in self.asked.values()))

    def wants(self, start: int, log: SimLog, held_from: int | None) -> bool:
        """Whether a table that this run began holds no needless history: older records only if newer ones expired."""
        if self.since in _EARLIEST:
            return True
        time_ms = self.since.ms if isinstance(self.since, TimePosition) else self.time_ms
        first = log.first_written(time_ms)
        # No table begins after the last stable offset of its commit: what is held back there may be older.
        first = first if held_from is None else min(first, held_from)
        # If the log shows no record before that time, newer ones than the run could see may have expired.
        return start >= log.sliceable(first) or first <= min(log.records, default=log.latest)


@dataclass(slots=True, kw_only=True)
class BeginLaw:
    """Checks where the partitions of a table begin (faults P01, P02).

    Args:
        runs: how each load began.
        origins: for each commit, the run that began its table; None if the topic was recreated.
    """

    cluster: SimCluster
    store: SimStore
    identity: IdentityLaw
    runs: dict[str, RunStart] = field(default_factory=dict)
    origins: dict[str, str | None] = field(default_factory=dict)

    def check(self, entry: LedgerEntry, before: LedgerEntry | None, newest: int) -> None:
        """Check where partitions begin that the table did not cover before.

        `newest` is the version of the commit.
        """
        known: Coverage = before.covered if before else {}
        origin: str | None = entry.run
        if entry.target is not None:
            restored = next(self.store.logged_entries(entry.target), (-1, None))[1]
            origin = self.origins[restored.commit] if restored else None
        elif before is not None and before.topic != entry.topic:
            origin, known = None, {}
        elif before is not None and before.covered:
            origin = self.origins[before.commit]
        self.origins[entry.commit] = origin
        for id_ in entry.covered.keys() - known.keys() if entry.kind is CommitKind.LOAD else ():
            was_shown = self.identity.answers[entry.run].incarnations
            if was_shown == {self.cluster.incarnation} and id_ in self.cluster.logs:
                self._check_begin(id_, entry, origin, newest)

    def _check_begin(self, id_: BrokerPartition, entry: LedgerEntry, origin: str | None, newest: int) -> None:
        start, log = entry.covered[id_][0], self.cluster.logs[id_]
        run = self.runs[entry.run]
        # A run that saw no commit may begin partitions as if it were the first one.
        seen = self._seen_by(entry.run, newest)
        has_begun = seen is not None and bool(seen[1].covered)
        if origin is None and (has_begun or (seen is not None and seen[1].topic != entry.topic)):
            require(start == 0, f"partition {id_} of a recreated topic begins at {start}")
            return
        first = self.runs[origin or entry.run]
        since = min(first.tick, run.tick)
        lied = self.identity.answers[origin or entry.run].lied | self.identity.answers[entry.run].lied
        if any(cut.tick >= since for cut in log.cuts) or id_ in lied:
            return
        starts = [first] if has_begun else [first, run]
        # A partition that begins at offset 0 is in no commit before its first rows. So what was held back when the
        # first run asked matters too: the transaction may have ended since.
        asked = [each.asked[id_].held_from for each in (first, run) if id_ in each.asked]
        held_from = min((offset for offset in asked if offset is not None), default=None)
        require(
            any(run_start.allows(start, id_, log) for run_start in starts),
            f"partition {id_} begins at {start}, and leaves out older records: {starts}",
        )
        # A run that saw a table begins new partitions at 0, although a rewind may have emptied the table since. The
        # table that it then begins has no other start for later partitions.
        saw = self._seen_by(origin, newest) if origin else None
        was_emptied = saw is not None and bool(saw[1].covered)
        # In 0.7 the partitions of a broker that is down are not registered, so they look like added ones.
        was_down = log.era.in_bytes and id_ not in first.asked
        require(
            run.has_window
            or was_emptied
            or was_down
            or any(run_start.wants(start, log, held_from) for run_start in starts),
            f"partition {id_} begins at {start}, before the user's start: {starts}",
        )

    def _seen_by(self, run: str, newest: int) -> tuple[int, LedgerEntry] | None:
        """The newest commit, with its version, that a run saw when it asked for the bounds of the logs."""
        version = self.identity.answers[run].bounds[0].version
        return next(self.store.logged_entries(min(version, newest)), None)
