"""The messages of the topic as Avro values. Later ones have a second schema, and some values do not decode.

The second schema has another type for `price`, and a new field. Each field of a message holds its number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.simulation.values import SimSchema

EARLIER = 600
"""The number of messages that are sent first. They have the first schema."""
SCHEMAS = (
    SimSchema(id=1, fields={"number": "long", "price": "long"}),
    SimSchema(id=2, fields={"number": "long", "price": "string", "note": "string"}),
)
_FIRST_COLUMNS = ["_kafka_schema_id", "number", "price"]
_COLUMNS = [*_FIRST_COLUMNS, "price_2", "note"]
_NO_FRAME = (b"", "the value has no frame with the id of a schema: its first byte is not 0")
_NO_SCHEMA = (b"\0\0\0\0\x63", "the registry main has no schema with the id 99")
_BROKEN: Mapping[int, tuple[bytes, str]] = {100: _NO_FRAME, 450: _NO_SCHEMA, 750: _NO_SCHEMA, 1100: _NO_FRAME}
"""The messages that do not decode: the bytes before their JSON text, and the reason."""


def avro_value(number: int) -> bytes:
    """The value of the message with this number."""
    if number in _BROKEN:
        return _BROKEN[number][0] + b'{"number": %d}' % number
    return SCHEMAS[number >= EARLIER].encode(number, "avro")


def _cells(number: int) -> Mapping[str, Any]:
    """The cells that the row of a message must have."""
    if number in _BROKEN:
        return {"_tombstone": False, "_error": _BROKEN[number][1], "_raw": avro_value(number)}
    if number < EARLIER:
        return {"_tombstone": False, "number": number, "price": number}
    return {"_tombstone": False, "number": number, "price_2": str(number), "note": str(number)}


def check_avro_table(rows: pa.Table, added: Sequence[str], count: int) -> None:
    """Check that each row has the cells of one of the first `count` messages, and that each column was added once.

    `added` are the columns that the entries of the ledger have added, from the oldest one on.
    """
    columns = [name for name in rows.column_names if name in added or not name.startswith("_")]
    assert columns == list(added), f"the table has the columns {columns}, and its ledger has added {added}"
    assert columns in (_FIRST_COLUMNS, _COLUMNS), columns
    expected = {frozenset(_cells(number).items()) for number in range(count)}
    for row in rows.to_pylist():
        cells = {name: cell for name, cell in row.items() if cell is not None and not name.startswith("_kafka_")}
        assert frozenset(cells.items()) in expected, f"no message has the row {cells}"
