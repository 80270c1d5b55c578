"""Avro values to rows. Writers' schemas may alternate from value to value; all fill the same buffers."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.errors import printable
from kafka_io.values.arrays import bytes_of
from kafka_io.values.avro.columns import type_node
from kafka_io.values.avro.frames import SCHEMA_ID, SchemaPrefix
from kafka_io.values.avro.json_text import RepeatedKey, json_text
from kafka_io.values.avro.program import Programs
from kafka_io.values.avro.schema import AvroType
from kafka_io.values.column_buffers import ColumnBuffers
from kafka_io.values.decoding import DecodedValues, FailedValue, in_order, with_repeated_keys
from kafka_io.values.framing import SchemaFrames, read_frames
from kafka_io.values.kernels import avro_program, avro_rows

_REASONS = {
    avro_program.CUT: "the value ends before this field does",
    avro_program.BAD_NUMBER: "a number is not a valid int or long",
    avro_program.BAD_LENGTH: "a length is negative, or greater than the bytes that are left",
    avro_program.BAD_COUNT: "a block states more items than the bytes that are left can hold",
    avro_program.BAD_TEXT: "a text is not valid UTF-8",
    avro_program.BAD_SYMBOL: "the enum has no such symbol",
    avro_program.BAD_BRANCH: "the union has no such branch",
    avro_program.BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    avro_program.OUT_OF_RANGE: "a date or time is outside of the years 1 to 9999",
    avro_program.BIG_DECIMAL: "a decimal needs more than 38 digits",
    avro_program.TOO_DEEP: f"values are nested deeper than {avro_program.MAX_DEPTH} levels",
    avro_program.TOO_MANY: f"arrays have more than {avro_program.FREE_ITEMS} items without bytes",
    avro_program.INEXACT: "the column has doubles, and would round the number",
    avro_program.TOO_LONG: "bytes are left after the last field",
}


class AvroDecoder:
    """Decodes Avro values into columns that were fixed before.

    `columns.py` of this package says which column each type has. A value is refused, with its reason, if it does not
    follow its schema to its last byte.

    >>> import pyarrow as pa
    >>> from kafka_io import parse_avro
    >>> order = parse_avro('{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}')
    >>> decoder = AvroDecoder(pa.schema([("id", pa.int64())]), {7: order})
    >>> decoded = decoder.decode(pa.array([bytes([0, 0, 0, 0, 7, 84]), b"", None], pa.binary()))
    >>> decoded.rows.to_pylist(), decoded.failures[0].row
    ([{'id': 42}, {'id': None}, {'id': None}], 1)

    Args:
        columns: the columns.
        schemas: writers' schemas by id, for values with the frame of Confluent's serializers; it may have more of them
            at a later call. A single schema stands for values that all have it.
        frame: what values of a single schema have before their body, see SchemaPrefix. By default it is nothing.

    Raises:
        TypeError: a column has a type that no decoder of values fills.
    """

    def __init__(self, columns: pa.Schema, schemas: Mapping[int, AvroType] | AvroType, frame: str = "") -> None:
        self._prefix = None if isinstance(schemas, Mapping) else SchemaPrefix(frame, schemas)
        self._schemas = schemas if isinstance(schemas, Mapping) else {SCHEMA_ID: schemas}
        self._buffers = ColumnBuffers(columns)
        self._programs = Programs(self._buffers.nodes)
        self._arrays = self._programs.arrays()
        self._stack = np.zeros(avro_program.MAX_DEPTH, np.int64)

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._buffers.columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values. See DecodedValues."""
        frames = self._prefix.frames(values) if self._prefix else read_frames(values)
        missing, failures = self._run(values, frames)
        while new := missing & self._schemas.keys():
            for schema_id in sorted(new):
                self._programs.add(schema_id, type_node(self._schemas[schema_id]))
            self._arrays = self._programs.arrays()
            missing, failures = self._run(values, frames)
        repeated = self._complete()
        if repeated:
            frames.starts[list(repeated)] = -1
            _, failures = self._run(values, frames)
            self._complete()
        refused: Iterable[FailedValue] = self._failures(failures)
        if self._prefix:
            refused = [self._prefix.explained(failure, values) for failure in refused]
        failed = in_order(frames.failures, refused, with_repeated_keys(repeated))
        return DecodedValues(
            rows=self._buffers.take(), failures=failed, unknown_schemas=frozenset(missing), schema_ids=frames.ids
        )

    def _complete(self) -> dict[int, str]:
        """Replace raw values by JSON; returns the rows with a map in which a key occurs twice, and the path of it."""
        repeated = self._buffers.repeated_keys()

        def text_of(path: str, type_number: int, row: int, data: bytes) -> bytes:
            try:
                return json_text(self._programs.raw_types[type_number], data)
            except RepeatedKey:
                repeated[row] = path
                return b""

        if self._programs.raw_types:
            self._buffers.replace_raw(text_of)
        return repeated

    def _run(self, values: pa.BinaryArray, frames: SchemaFrames) -> tuple[set[int], npt.NDArray[np.int64]]:
        """Fill the buffers; returns the ids without a program, and the failures as rows of the kernel's table."""
        data, ends = bytes_of(values)
        unknown = np.zeros(len(values), np.uint8)
        decode = partial(
            avro_rows.decode_rows, data, ends, frames.starts, frames.ids, self._arrays, self._stack, unknown
        )
        failures = self._buffers.fill(len(values), decode)
        return set(frames.ids[unknown != 0].tolist()), failures

    def _failures(self, failures: npt.NDArray[np.int64]) -> Iterator[FailedValue]:
        for row, status, place, position in failures.tolist():
            reason = self._programs.reason_of(place) if status == avro_program.REFUSED else _REASONS[status]
            path = self._programs.path_of(place)
            path = printable(path) if path else ""
            yield FailedValue(row=row, reason=f"{path}: {reason} (byte {position})" if path else reason)


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    AvroDecoder(pa.schema([("value", pa.int64())]), {}).decode(pa.array([], pa.binary()))
