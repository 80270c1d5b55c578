"""Other tools read results of kafka_io directly, through Arrow's PyCapsule interface."""

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from kafka_io import ConsumedBatch, DecodedBatch, DecodedValues, FailedValue

ROWS = pa.record_batch(
    {
        "id": pa.array([1, None, 3], pa.int64()),
        "note": pa.array(["a", None, "c"]),
        "place": pa.array([{"city": "Ulm"}, None, {"city": None}], pa.struct({"city": pa.string()})),
    }
)
RESULTS = {
    "DecodedValues": DecodedValues(rows=ROWS, failures=(FailedValue(row=1, reason="the value is empty"),)),
    "DecodedBatch": DecodedBatch(ROWS, 3, {}),
    "ConsumedBatch": ConsumedBatch(topic="clicks", partition=0, records=ROWS, next_offset=3),
}
READERS: dict[str, Callable[[Any], list[dict[str, Any]]]] = {
    "pyarrow": lambda result: pa.table(result).to_pylist(),
    "DuckDB": lambda result: duckdb.from_arrow(result).to_arrow_table().to_pylist(),
    "Polars": lambda result: pl.DataFrame(result).to_dicts(),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_reader_of_arrow_reads_a_result_directly(read: Callable[[Any], Any], result: Any) -> None:
    assert read(result) == ROWS.to_pylist()


def test_a_reader_can_request_other_types() -> None:
    wider = pa.schema([("id", pa.float64()), *list(ROWS.schema)[1:]])
    assert pa.table(RESULTS["DecodedValues"], schema=wider).schema == wider
