"""The filter for the rows of a committed range: the rows with its partition, its offsets and its loading time."""

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.layout.layout import TableLayout
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.committed_range import CommittedRange


def arrow_filter(committed: CommittedRange, layout: TableLayout) -> pc.Expression:
    """Matches the rows of the range."""
    broker, partition = committed.partition.broker, committed.partition.partition
    loaded_at = pa.scalar(committed.loaded_at_us, FILE_SCHEMA.field("loaded_at").type)
    field = {name: pc.field(layout.name(name)) for name in ("broker", "partition", "offset", "loaded_at")}
    # The offsets alone are not enough: a topic that was created again begins at 0 again (fault U13), and a replay
    # writes the same offsets once more.
    matches = (field["partition"] == partition) & (field["loaded_at"] == loaded_at)
    if broker is not None:  # in 0.7 each broker has a partition 0 of its own
        matches &= field["broker"] == broker
    return matches & (field["offset"] >= committed.offsets.start) & (field["offset"] < committed.offsets.stop)
