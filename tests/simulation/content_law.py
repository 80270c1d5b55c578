"""The law that a load stops where leader epochs show that a log lost what the table has, and has other records now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_io.model import BrokerPartition
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import incarnations
from pipelines.ledger.ledger import LedgerEntry
from tests.simulation.brokers import SimCluster
from tests.simulation.sim_log import SimLog
from tests.simulation.store import SimStore
from tests.simulation.workers import Read

ReadsByLoading = Mapping[tuple[BrokerPartition, int], Sequence[Read]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentLaw:
    """Compares the records of logs with what was read. `reads` are all reads, by partition and loading time."""

    cluster: SimCluster
    store: SimStore
    reads: ReadsByLoading

    def other_logs(self, version: int, planned_on: LedgerEntry) -> Iterator[tuple[BrokerPartition, SimLog]]:
        """The logs with other records than the table, whose leaders do not know the epochs of the table, or end them.

        The last message of the table can be in such a log (faults A01, B03, B04).

        Args:
            version: the version of the table that a run has planned on.
            planned_on: its newest entry.
        """
        bounds = self.cluster.answers.bounds[-1].bounds
        known = {
            id_: (planned_on.covered[id_][1], epoch)
            for id_, epoch in planned_on.state.epochs.items()
            if id_ in bounds and bounds[id_].epoch != epoch
        }
        shown = self.cluster.true_truncations(known).keys()
        ranges = incarnations(self.store.logged_entries(version))[0].ranges if shown else ()
        for id_ in sorted(shown):
            log = self.cluster.logs[id_]
            if any(self._differs(log, committed) for committed in ranges if committed.partition == id_):
                yield id_, log

    def _differs(self, log: SimLog, committed: CommittedRange) -> bool:
        """Whether the log has a record of the range that was not read. What was skipped by choice says nothing."""
        return any(
            log.records.get(offset, read.payloads.get(offset)) != read.payloads.get(offset)
            for read in self.reads.get((committed.partition, committed.loaded_at_us), ())
            if not read.skipped
            for offset in range(
                max(read.start, committed.offsets.start, log.earliest), min(read.stop, committed.offsets.stop)
            )
        )
