"""The digest of a message never changes: tables keep those of their last messages."""

import pyarrow as pa
import pytest

from kafka_io.records.last_message import LastMessage

TIMES = pa.array([5, None, -1], pa.timestamp("ms"))


@pytest.mark.parametrize(
    ("index", "digest"),
    [
        (0, "05ba695897f4ce8c9decf0ab18411e23"),
        (1, "fb5e21a772f8d6bd5a88953b8d89a4d6"),
        (-1, "a274994d70a8c7030928f05384b2666e"),
    ],
)
def test_the_digest_of_a_message_is_that_of_earlier_versions(index: int, digest: str) -> None:
    columns = {"offset": pa.array([7, 8, 9]), "timestamp": TIMES, "key": [b"k", None, b""], "value": [b"v", b"", None]}
    assert LastMessage.of(pa.RecordBatch.from_pydict(columns), index).digest == digest
    in_utc = {**columns, "timestamp": TIMES.cast(pa.timestamp("ms", "UTC"))}
    assert LastMessage.of(pa.RecordBatch.from_pydict(in_utc), index).digest == digest


def test_the_position_inside_a_message_of_0_7_counts() -> None:
    rows = pa.RecordBatch.from_pydict({"offset": pa.array([7, 7]), "inner": pa.array([0, 1]), "value": [b"v", b"v"]})
    assert LastMessage.of(rows) == LastMessage(offset=7, digest="e498a740ba21ac80e6f8640b31611084")
    assert LastMessage.of(rows, 0).digest != "e498a740ba21ac80e6f8640b31611084"
