"""Framed Avro values to rows. Writers' schemas may alternate from value to value; all fill the same buffers."""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.errors import printable
from kafka_io.values.arrays import bytes_of
from kafka_io.values.avro.columns import type_node
from kafka_io.values.avro.json_text import json_text
from kafka_io.values.avro.program import Programs
from kafka_io.values.avro.schema import AvroType
from kafka_io.values.column_buffers import ColumnBuffers
from kafka_io.values.decoding import DecodedValues, FailedValue, in_order
from kafka_io.values.framing import SchemaFrames, read_frames
from kafka_io.values.kernels import avro_program, avro_rows
from kafka_io.values.kernels.column_buffers import BYTES, CELL, CONTENT, TEXT, VALID

_REASONS = {
    avro_program.CUT: "the value ends before this field does",
    avro_program.BAD_NUMBER: "a number is not a valid int or long",
    avro_program.BAD_LENGTH: "a length is negative, or greater than the bytes that are left",
    avro_program.BAD_COUNT: "a block states more items than the bytes that are left can hold",
    avro_program.BAD_TEXT: "a text is not valid UTF-8",
    avro_program.BAD_SYMBOL: "the enum has no such symbol",
    avro_program.BAD_BRANCH: "the union has no such branch",
    avro_program.BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    avro_program.OUT_OF_RANGE: "a time does not fit into 64 bits of microseconds",
    avro_program.BIG_DECIMAL: "a decimal needs more than 38 digits",
    avro_program.TOO_DEEP: f"values are nested deeper than {avro_program.MAX_DEPTH} levels",
    avro_program.TOO_MANY: f"arrays have more than {avro_program.FREE_ITEMS} items without bytes",
    avro_program.TOO_LONG: "bytes are left after the last field",
}


class AvroDecoder:
    """Decodes Avro values with the frame of Confluent's serializers into columns that were fixed before.

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
        schemas: writers' schemas by id; it may have more of them at a later call.

    Raises:
        TypeError: a column has a type that no decoder of values fills.
    """

    def __init__(self, columns: pa.Schema, schemas: Mapping[int, AvroType]) -> None:
        self._schemas = schemas
        self._buffers = ColumnBuffers(columns)
        self._programs = Programs(self._buffers.nodes)
        self._arrays = self._programs.arrays()
        self._entries: dict[int, int] = {}
        self._saved = np.zeros_like(self._buffers.counts)
        self._inner = self._buffers.inside_lists()
        self._work = np.zeros(avro_program.WORK_SIZE, np.int64)
        self._bits = np.zeros(1, np.int32)
        self._scratch = np.zeros(16, np.uint8)

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._buffers.columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values. See DecodedValues."""
        frames = read_frames(values)
        missing, failures = self._run(values, frames)
        while new := missing & self._schemas.keys():
            self._add(new)
            missing, failures = self._run(values, frames)
        self._write_json()
        failed = in_order(frames.failures, self._failures(failures))
        return DecodedValues(rows=self._buffers.take(), failures=failed, unknown_schemas=frozenset(missing))

    def _add(self, ids: set[int]) -> None:
        """Add the programs of schemas that occur for the first time."""
        for schema_id in sorted(ids):
            self._entries[schema_id] = self._programs.add(type_node(self._schemas[schema_id]))
        self._arrays = self._programs.arrays()

    def _run(self, values: pa.BinaryArray, frames: SchemaFrames) -> tuple[set[int], npt.NDArray[np.int64]]:
        """Fill the buffers; returns the ids without a program, and the failures as rows of the kernel's table."""
        data, ends = bytes_of(values)
        rows, buffers = len(values), self._buffers
        buffers.start(rows)
        known = sorted(self._entries)
        ids, entries = np.array(known, np.int64), np.array([self._entries[id_] for id_ in known], np.int64)
        missing, failures = np.empty(rows, np.int32), np.empty(4 * rows, np.int64)
        done = np.zeros(2, np.int64)
        row = 0
        while True:
            status, row = avro_rows.decode_rows(
                data, ends, frames.starts, frames.ids, row, ids, entries, *self._arrays, buffers.table, buffers.cells,
                buffers.reals, buffers.valid, buffers.content, buffers.counts, self._saved, self._inner, self._work,
                self._bits, self._bits.view(np.float32), self._scratch, missing, failures, done,
            )  # fmt: skip
            if status == avro_program.OK:
                return set(missing[: done[1]].tolist()), failures[: 4 * done[0]].reshape(-1, 4)
            node, size_bytes, items = self._work[avro_program.FULL_NODE :].tolist()
            buffers.grow(node, size_bytes, items - int(buffers.counts[node]))

    def _failures(self, failures: npt.NDArray[np.int64]) -> Iterator[FailedValue]:
        for row, status, place, position in failures.tolist():
            reason = self._programs.reason_of(place) if status == avro_program.REFUSED else _REASONS[status]
            path = self._programs.path_of(place)
            path = printable(path) if path else ""
            yield FailedValue(row=row, reason=f"{path}: {reason} (byte {position})" if path else reason)

    def _write_json(self) -> None:
        """Replace the values that the kernel kept as bytes by JSON."""
        if not self._programs.raw_types:
            return
        for node, buffer in enumerate(self._buffers.nodes):
            if buffer.buffer_kind == TEXT:
                count = int(self._buffers.counts[node])
                valid = self._buffers.valid[self._buffers.table[node, VALID] :][:count]
                raw = np.flatnonzero(valid == avro_program.RAW_VALUE).tolist()
                if raw:
                    self._rewrite(node, self._texts(node, count, set(raw)))

    def _texts(self, node: int, count: int, raw: set[int]) -> Iterator[bytes]:
        """All texts of a buffer, with JSON for the items of `raw`."""
        table, prefix = self._buffers.table, avro_program.RAW_PREFIX
        ends = self._buffers.cells[table[node, CELL] :][: count + 1].tolist()
        content = self._buffers.content[table[node, CONTENT] :][: ends[-1]].tobytes()
        for item in range(count):
            text = content[ends[item] : ends[item + 1]]
            if item in raw:
                avro = self._programs.raw_types[int.from_bytes(text[:prefix], "little")]
                text = json_text(avro, text[prefix:])
            yield text

    def _rewrite(self, node: int, new_texts: Iterator[bytes]) -> None:
        texts, buffers = list(new_texts), self._buffers
        size = sum(map(len, texts))
        if size > buffers.table[node, BYTES]:
            buffers.grow(node, size)
        buffers.cells[buffers.table[node, CELL] :][: len(texts) + 1] = np.cumsum([0, *map(len, texts)])
        buffers.content[buffers.table[node, CONTENT] :][:size] = np.frombuffer(b"".join(texts), np.uint8)


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    AvroDecoder(pa.schema([("value", pa.int64())]), {}).decode(pa.array([], pa.binary()))
