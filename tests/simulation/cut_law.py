"""The law that a cut takes back only rows that the log has lost, or that the next loads fetch again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_io.model import BrokerPartition
from pipelines.ledger.ledger import CommitKind
from tests.simulation.broken import require
from tests.simulation.brokers import SimCluster
from tests.simulation.identity_law import IdentityLaw
from tests.simulation.store import Row, SimStore, Version
from tests.simulation.workers import Read

ReadsByLoading = Mapping[tuple[BrokerPartition, int], Sequence[Read]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLaw:
    """Checks each cut. `reads` are all reads of the workers, by partition and loading time."""

    cluster: SimCluster
    store: SimStore
    identity: IdentityLaw
    reads: ReadsByLoading

    def check(self, version: int) -> None:
        """Check a version that has just landed (fault P12).

        Leader epochs may show a truncation below the true one, so this checks nothing for brokers that report them. A
        broker that lied to the run about the end of a log can make it look shorter.

        Raises:
            Broken: a cut took back a row that the log did not lose, and that no load can fetch again.
        """
        after = self.store.versions[version]
        if after.entry is None or after.entry.kind is not CommitKind.CUT or self.cluster.era.has_epochs:
            return
        lied = self.identity.answers[after.entry.run].lied
        harmed = [row for row in self._taken_back(version, after) if row.id not in lied and not self._is_lost(row)]
        require(not harmed, f"{after.entry.run} takes back rows that the log has not lost: {harmed[:3]}")

    def _taken_back(self, version: int, after: Version) -> Iterator[Row]:
        kept = {row for rows in after.files.values() for row in rows}
        before = self.store.versions[version - 1]
        return (row for rows in before.files.values() for row in rows if row not in kept)

    def _is_lost(self, row: Row) -> bool:
        """Whether the log was truncated below the row since it was read, or is another one, or still has the record."""
        log = self.cluster.logs.get(row.id)
        read = next(read for read in self.reads[row.id, row.loaded_at_us] if read.start <= row.offset < read.stop)
        if log is None or read.incarnation != self.cluster.incarnation or log.records.get(row.offset) == row.payload:
            return True
        return any(cut.tick > read.tick and cut.offset <= row.offset for cut in log.cuts)
