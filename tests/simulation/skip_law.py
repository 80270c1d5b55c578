"""The law that batches which cannot be read are skipped by choice only, and that their bytes are kept."""

from collections.abc import Callable, Sequence

from kafka_io.model import BrokerPartition
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from resources.settings.choices import Choices
from tests.simulation.broken import require
from tests.simulation.store import SimStore
from tests.simulation.workers import Read, SimReader

_UNREADABLE = {"on_corrupt": "corrupt", "on_too_large": "too large"}
"""The choices about batches that cannot be read, with the cause of the gap that each leaves."""


def check_skipped(
    entry: LedgerEntry, choices: Choices, reads_of: Callable[[CommittedRange], Sequence[Read]], store: SimStore
) -> None:
    """Check the ranges of a commit whose run had these choices (faults N03, N04).

    Raises:
        Broken: offsets were skipped without the choice, or without a receipt that leads to their bytes.
    """
    for committed in entry.ranges if entry.kind is CommitKind.LOAD else ():
        skipped = [read for read in reads_of(committed) if read.skipped]
        for setting, cause in _UNREADABLE.items():
            reads = [read for read in skipped if read.skipped == setting]
            size = sum(read.stop - read.start for read in reads)
            require(
                committed.gaps.get(cause, 0) == size,
                f"{committed} has the gaps {committed.gaps}, but {size} of its offsets are {cause}",
            )
            is_chosen = getattr(choices, setting) == "skip"
            require(is_chosen or not reads, f"{committed} was skipped without the choice {setting}")
            for read in reads:
                _check_receipt(entry, committed.partition, read, store)


def _check_receipt(entry: LedgerEntry, partition: BrokerPartition, read: Read, store: SimStore) -> None:
    place = (read.skipped, "skip", str(partition), read.start, read.stop)
    kept = [
        store.quarantine.get(choice.path or "")
        for choice in entry.choices
        if (choice.setting, choice.value, choice.partition, choice.start, choice.stop) == place
    ]
    require(
        SimReader.bytes_of(read.start, read.stop) in kept,
        f"the offsets {place} were skipped without a receipt that leads to their bytes: {entry.choices}",
    )
