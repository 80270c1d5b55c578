"""The interface that all decoders of values share.

A decoder fills columns that were fixed before, because a data file has one schema from its first row to its last.
The types of columns are those that never need widening: long, double, decimal(38, s), string, binary, bool, date32,
timestamp[us] with and without UTC, struct, list and map. All columns are nullable. `columns.py` says which field of a
schema goes into which column.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.errors import printable

NO_ROWS = np.empty(0, np.int64)
"""The indexes of no rows."""
NO_IDS = np.empty(0, np.int32)
"""The ids of the schemas of values without frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedValue:
    """A value that does not decode.

    >>> FailedValue(row=3, reason="the value is empty").row
    3

    Args:
        row: index of the value in its array.
        reason: one short printable sentence, without bytes of the value.
    """

    row: int
    reason: str


def with_repeated_keys(paths: Mapping[int, str]) -> Iterator[FailedValue]:
    """The failures of values with a map in which a key occurs twice, from the path of the map by row."""
    for row, path in paths.items():
        yield FailedValue(row=row, reason=f"{printable(path)}: a key of the map occurs twice")


def in_order(*failures: Iterable[FailedValue]) -> Sequence[FailedValue]:
    """All these failures in the order of rows."""
    return sorted(chain.from_iterable(failures), key=lambda failure: failure.row)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedValues:
    """The rows of an array of values.

    >>> import pyarrow as pa
    >>> decoded = DecodedValues(rows=pa.record_batch({"id": [7, None]}))
    >>> decoded.rows.num_rows, decoded.failures, decoded.unknown_schemas
    (2, (), frozenset())

    Args:
        rows: as many rows as values, in their order. The row of a null value, and of a value that does not decode, is
            null in every column.
        failures: the values that do not decode, in the order of rows. A null value is not a failure.
        unknown_schemas: ids of schemas that the decoder does not have. The rows of these values are null. They are not
            failures: they may decode as soon as the schemas are known.
        unknown_messages: message types of known Protobuf schemas for which the columns were not made, with the id of
            their schema. The rows of these values are null, and no failures either.
        schema_ids: the id of the schema of each value, also of an unknown schema; -1 for a null value, and for one
            without a valid frame. A decoder of values without frames gives none.
        new_keys: rows whose value has a key that no column holds, with something other than null, {} and []. Decoders
            of values with schemas report none.
        rounded: rows with a number that lost digits, because its column is a double that nobody has declared.
    """

    rows: pa.RecordBatch
    failures: Sequence[FailedValue] = ()
    unknown_schemas: frozenset[int] = frozenset()
    unknown_messages: frozenset[tuple[int, str]] = frozenset()
    schema_ids: npt.NDArray[np.int32] = field(default_factory=lambda: NO_IDS, compare=False)
    new_keys: npt.NDArray[np.int64] = field(default_factory=lambda: NO_ROWS, compare=False)
    rounded: npt.NDArray[np.int64] = field(default_factory=lambda: NO_ROWS, compare=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream of Arrow's PyCapsule interface: pyarrow, DuckDB and Polars read this object directly."""
        return self.rows.__arrow_c_stream__(requested_schema)


class ValueDecoder(Protocol):
    """Decodes the values of one topic into columns that were fixed before.

    A decoder keeps its memory between calls, so it belongs to one thread. Its answers stay valid.
    """

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        ...

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values: a column that a value lacks is null, a field without a column is dropped."""
        ...
