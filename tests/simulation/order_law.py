"""The law that the ledger orders the incarnations of a topic, and that the clocks of loaders do not (fault A06).

A state table keeps the row of the newest incarnation, so rows of an older one never get a higher number.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kafka_io.model import BrokerPartition
from pipelines.ledger.incarnations import IncarnationRanges
from pipelines.ledger.ledger import LedgerEntry
from pipelines.state_tables import update
from tests.simulation.broken import require
from tests.simulation.workers import Read


def check_order(
    entries: Iterable[tuple[int, LedgerEntry]],
    of_table: Sequence[IncarnationRanges],
    reads: Mapping[str, Mapping[BrokerPartition, Sequence[Read]]],
) -> None:
    """Check the numbers that Penstock's own code gives to the incarnations of a table.

    Args:
        entries: the ledger, from the newest entry to the first.
        of_table: its incarnations.
        reads: the reads of their ranges, by the incarnation of the ledger and partition.

    Raises:
        Broken: rows of an older topic count as newer.
    """
    if len(of_table) < 2:
        return
    numbers = update.incarnation_numbers(entries)
    of_topic: dict[int, set[int]] = defaultdict(set)
    for incarnation in of_table:
        given = {numbers[committed.loaded_at_us] for committed in incarnation.ranges}
        for read in (read for part in reads.get(incarnation.topic.incarnation, {}).values() for read in part):
            of_topic[int(read.incarnation.rpartition("-")[2])] |= given
    highest = min(numbers.values())
    for number, given in sorted(of_topic.items()):
        require(highest <= min(given), f"rows of the topic {number} count as older than those of a former one")
        highest = max(highest, *given)
