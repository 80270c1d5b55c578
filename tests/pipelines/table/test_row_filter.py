"""A filter matches exactly the rows of a committed range."""

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.layout.layout import RAW, TYPED, TableLayout
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.committed_range import CommittedRange
from pipelines.table.row_filter import arrow_filter

NAMES = ("broker", "partition", "offset", "loaded_at")


@pytest.mark.parametrize("layout", [RAW, TYPED], ids=["raw", "typed"])
@pytest.mark.parametrize("broker", [None, 1])
def test_only_rows_of_the_partition_the_offsets_and_the_load_match(broker: int | None, layout: TableLayout) -> None:
    inside = [(broker, 2, 10, 7), (broker, 2, 19, 7)]
    outside = [(broker, 3, 10, 7), (broker, 2, 9, 7), (broker, 2, 20, 7), (broker, 2, 10, 8)]
    others = [] if broker is None else [(5, 2, 10, 7)]
    columns = zip(*inside, *outside, *others, strict=True)
    types = [FILE_SCHEMA.field(name).type for name in NAMES]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    rows = pa.table(arrays, names=[layout.name(name) for name in NAMES])
    committed = CommittedRange(offsets=OffsetRange(BrokerPartition(broker, 2), 10, 20), loaded_at_us=7)
    matching = pads.dataset(rows).to_table(filter=arrow_filter(committed, layout))
    assert matching.equals(rows.slice(0, len(inside)))
