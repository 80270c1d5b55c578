"""JSON values to typed columns, strictly: a value is one document, and nothing is converted that the column forbids.

A value is refused, with its reason, if it is not exactly one JSON object (RFC 8259, valid UTF-8, at most 128 levels
deep). So is one in which a key of a column or of a map occurs twice, or something that its column cannot hold:

    column                read from
    bool                  true, false
    long                  an integer from -2^63 to 2^63 - 1, without fraction or exponent; no text
    double                a number up to 1.7976931348623157e308; no text
    decimal               a number that the decimal holds exactly, or such a number as a text
    string                a text without lone surrogates
    binary                a text of base64 with padding
    date                  a text YYYY-MM-DD
    timestamp[us, UTC]    a text of ISO 8601 with a zone: 2013-01-01T06:00:00.5+01:00; digits after the sixth are cut
    timestamp[us]         the same without a zone
    struct, list, map     an object, an array, an object

The metadata key `json` of a field changes how it is read: see JsonReading. `null` is null in every column. A key
without a column is dropped after its value was checked; but if the key of a value around it also has a column of JSON
text, that column holds the value around it as a whole. Dates and times are in the years 1 to 9999.
"""

from collections.abc import Collection, Mapping
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.jit.scalars import ByteArray, Int32s, read_only
from kafka_io.values.arrays import bodies_of
from kafka_io.values.column_buffers import ColumnBuffers, Node
from kafka_io.values.columns import aliases, field_name
from kafka_io.values.decoding import NO_ROWS, DecodedValues, FailedValue, in_order, with_repeated_keys
from kafka_io.values.framing import read_frames
from kafka_io.values.json.reading import JsonNumbers, JsonReading, reading_of
from kafka_io.values.kernels import json_rows, json_scalars
from kafka_io.values.kernels.column_buffers import LIST, MAP, STRUCT
from kafka_io.values.kernels.json_program import (
    BAD_BASE64,
    BAD_DATE,
    BAD_ESCAPE,
    BAD_LITERAL,
    BAD_NUMBER,
    BAD_SEPARATOR,
    BAD_TIME,
    BAD_UTF8,
    CONTROL_CHARACTER,
    CUT,
    DUPLICATE_KEY,
    EMPTY,
    EXTRA,
    EXTRA2,
    FIRST_SLOT,
    INEXACT,
    KEY_COLUMNS,
    LONE_SURROGATE,
    MAX_DEPTH,
    NAME_SIZE,
    NEW_KEY,
    NOT_A_KEY,
    NOT_A_VALUE,
    NOT_AN_INTEGER,
    OP,
    OTHER,
    OUT_OF_RANGE,
    READ_BASE64,
    READ_BOOL,
    READ_DATE,
    READ_DECIMAL,
    READ_DECIMAL_BYTES,
    READ_DOUBLE,
    READ_EPOCH,
    READ_EPOCH_DAYS,
    READ_JSON,
    READ_LIST,
    READ_LOCAL_TIMESTAMP,
    READ_LONG,
    READ_MAP,
    READ_STRING,
    READ_STRUCT,
    READ_TIMESTAMP,
    READING_COLUMNS,
    ROUNDED,
    SECOND_DOCUMENT,
    SLOT_MASK,
    TOO_DEEP,
    WATCHED,
    WORK_SIZE,
    WRONG_TYPE,
    WRONG_ZONE,
    JsonProgram,
)

_READINGS: Mapping[JsonReading, tuple[int, int]] = {
    JsonReading.TEXT: (READ_JSON, 0),
    JsonReading.EPOCH_SECONDS: (READ_EPOCH, 1_000_000),
    JsonReading.EPOCH_MILLIS: (READ_EPOCH, 1_000),
    JsonReading.EPOCH_MICROS: (READ_EPOCH, 1),
    JsonReading.EPOCH_NANOS: (READ_EPOCH, -1_000),
    JsonReading.EPOCH_DAYS: (READ_EPOCH_DAYS, 1),
    JsonReading.TIME_MILLIS: (READ_EPOCH, 1_000),
    JsonReading.TIME_MICROS: (READ_EPOCH, 1),
    JsonReading.TIME_NANOS: (READ_EPOCH, -1_000),
}
_MARKED = {JsonNumbers.DECLARED: READ_LONG, JsonNumbers.INFERRED: READ_DOUBLE}
_BY_BUFFER_KIND = {STRUCT: READ_STRUCT, LIST: READ_LIST, MAP: READ_MAP}
_BY_TYPE = {
    pa.bool_(): READ_BOOL,
    pa.int64(): READ_LONG,
    pa.float64(): READ_DOUBLE,
    pa.string(): READ_STRING,
    pa.binary(): READ_BASE64,
    pa.date32(): READ_DATE,
    pa.timestamp("us", tz="UTC"): READ_TIMESTAMP,
    pa.timestamp("us"): READ_LOCAL_TIMESTAMP,
}

REASONS = {
    EMPTY: "the value is empty",
    CUT: "the document is not complete",
    SECOND_DOCUMENT: "more follows after the document",
    TOO_DEEP: f"objects and arrays are nested deeper than {MAX_DEPTH} levels",
    NOT_A_VALUE: "no JSON value begins here",
    NOT_A_KEY: "a key must begin here",
    BAD_SEPARATOR: "a comma, colon or closing bracket is missing",
    BAD_LITERAL: "a word is none of true, false and null",
    BAD_NUMBER: "a number is not valid",
    BAD_UTF8: "a text is not valid UTF-8",
    CONTROL_CHARACTER: "a text contains a control character without an escape",
    BAD_ESCAPE: "a text contains an unknown escape",
    LONE_SURROGATE: "a text contains half of a surrogate pair",
    DUPLICATE_KEY: "the key occurs twice",
    WRONG_TYPE: "the value has another type than the column",
    NOT_AN_INTEGER: "the number has a fraction or an exponent, and the column holds integers",
    OUT_OF_RANGE: "the number is too large for the column",
    INEXACT: "the number has more digits after the point than the column",
    BAD_DATE: "the text is not a date YYYY-MM-DD",
    BAD_TIME: "the text is not a time of ISO 8601",
    WRONG_ZONE: "the time has a zone and the column has none, or the other way round",
    BAD_BASE64: "the text is not base64",
}
"""The reason why a value is refused, by status."""


class JsonDecoder:
    """Decodes JSON documents into columns that were fixed before. See the module for what is accepted.

    >>> import pyarrow as pa
    >>> decoder = JsonDecoder(pa.schema({"id": pa.int64(), "day": pa.date32()}))
    >>> decoded = decoder.decode(pa.array([b'{"id": 7, "day": "2013-01-01"}', b'{"id": 7.5}', None], pa.binary()))
    >>> decoded.rows.to_pylist()[0], decoded.failures[0].row
    ({'id': 7, 'day': datetime.date(2013, 1, 1)}, 1)
    >>> decoded.failures[0].reason
    'id: the number has a fraction or an exponent, and the column holds integers (byte 7)'

    Args:
        columns: the columns; a key without a column is dropped, and its row is reported in `new_keys`.
        unwatched: the paths of structs whose keys without a column are not reported; the document itself is "".
        numbers: who has chosen the columns of numbers.

    Raises:
        TypeError: a column has a type that no decoder of values fills.
    """

    def __init__(
        self, columns: pa.Schema, unwatched: Collection[str] = (), numbers: JsonNumbers = JsonNumbers.STRICT
    ) -> None:
        self._buffers = ColumnBuffers(columns)
        self._program = _program_of(self._buffers.nodes, unwatched)
        self._numbers = numbers
        if numbers in _MARKED:
            self._program.readings[self._program.readings[:, OP] == _MARKED[numbers], EXTRA] = 1
        self._work = np.zeros(WORK_SIZE, np.int64)

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._buffers.columns

    def decode(self, values: pa.BinaryArray, starts: npt.NDArray[np.int32] | None = None) -> DecodedValues:
        """The rows of these documents.

        Args:
            values: the documents; null is a row of nulls and no failure.
            starts: start of each document in the bytes of the array, if a frame precedes it; -1 for a null row.
        """
        data, begins, ends = bodies_of(values)
        begins = begins if starts is None else starts
        notes = np.zeros(len(values), np.uint8)
        failures = self._fill(data, begins, ends, notes)
        repeated = self._buffers.repeated_keys()
        if repeated:
            begins = begins.copy()
            begins[list(repeated)], notes[list(repeated)] = -1, 0
            failures = self._fill(data, begins, ends, notes)
        return DecodedValues(
            rows=self._buffers.take(),
            failures=in_order(self._failures(failures.tolist()), with_repeated_keys(repeated)),
            new_keys=np.flatnonzero(notes & NEW_KEY),
            rounded=np.flatnonzero(notes & ROUNDED) if self._numbers is JsonNumbers.INFERRED else NO_ROWS,
        )

    def _fill(self, data: ByteArray, begins: Int32s, ends: Int32s, notes: ByteArray) -> npt.NDArray[np.int64]:
        """Fill the buffers; returns the failures as rows of the kernel's table."""
        decode = partial(json_rows.decode_rows, data, begins, ends, self._program, self._work, notes)
        return self._buffers.fill(len(ends), decode)

    def _failures(self, failures: list[list[int]]) -> list[FailedValue]:
        return [FailedValue(row=row, reason=self._reason(*why)) for row, *why in failures]

    def _reason(self, status: int, node: int, position: int) -> str:
        path = self._buffers.nodes[node].path if node < len(self._buffers.nodes) else ""
        return f"{path}: {REASONS[status]} (byte {position})" if path else f"{REASONS[status]} (byte {position})"


class FramedJsonDecoder:
    """Decodes JSON documents with the frame of Confluent's serializers. The columns alone say how they are read.

    >>> import pyarrow as pa
    >>> decoder = FramedJsonDecoder(pa.schema({"id": pa.int64()}), schemas={7})
    >>> frames = [bytes([0, 0, 0, 0, number]) for number in (7, 8)]
    >>> decoded = decoder.decode(pa.array([frames[0] + b'{"id": 1}', frames[1] + b'{"id": 2}'], pa.binary()))
    >>> decoded.rows.to_pylist(), decoded.unknown_schemas
    ([{'id': 1}, {'id': None}], frozenset({8}))

    Args:
        columns: as of JsonDecoder.
        schemas: the ids of the schemas that the columns are made from; it may have more of them at a later call. A
            value with another id is not decoded, because its schema may have more columns.

    Raises:
        TypeError: a column has a type that no decoder of values fills.
    """

    def __init__(self, columns: pa.Schema, schemas: Collection[int]) -> None:
        self._decoder = JsonDecoder(columns, numbers=JsonNumbers.DECLARED)
        self._schemas = schemas

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._decoder.columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values. See DecodedValues."""
        frames = read_frames(values)
        ids = {number for number in np.unique(frames.ids).tolist() if number >= 0}
        unknown = ids - set(self._schemas)
        starts = np.where(np.isin(frames.ids, list(unknown)), np.int32(-1), frames.starts) if unknown else frames.starts
        decoded = self._decoder.decode(values, starts)
        failures = in_order(frames.failures, decoded.failures)
        return DecodedValues(
            rows=decoded.rows, failures=failures, unknown_schemas=frozenset(unknown), schema_ids=frames.ids
        )


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    FramedJsonDecoder(pa.schema([("value", pa.int64())]), {}).decode(pa.array([], pa.binary()))


def _program_of(nodes: list[Node], unwatched: Collection[str]) -> JsonProgram:
    readings = np.zeros((len(nodes), READING_COLUMNS), np.int64)
    readings[:, WATCHED] = [node.path not in unwatched for node in nodes]
    keys: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)]
    slots: list[int] = []
    names = bytearray()
    for index, node in enumerate(nodes):
        readings[index, OP], readings[index, EXTRA], readings[index, EXTRA2] = _reading_of(node)
        if node.buffer_kind != STRUCT:
            continue
        members = _members_by_key({member: nodes[member].field for member in node.members})
        numbers: dict[int, bytes] = {}
        for key, same_key in members.items():
            numbers[len(keys)] = key
            keys.append((len(names), len(key), same_key[0], 0))
            names += key
            for member, other in pairwise(same_key):
                readings[member, OTHER] = other
        table = _hash_table(numbers)
        readings[index, FIRST_SLOT], readings[index, SLOT_MASK] = len(slots), len(table) - 1
        slots += table
    key_table = np.array(keys, np.int64)
    assert key_table.shape[1] == KEY_COLUMNS
    # A code point that takes up to four bytes can be written as two escapes of six.
    scratch = np.empty(max(6 * int(key_table[:, NAME_SIZE].max()), json_scalars.DECIMAL_TEXT), np.uint8)
    return JsonProgram(readings, key_table, np.array(slots, np.int64), read_only(bytes(names)), scratch)


def _members_by_key(members: Mapping[int, pa.Field]) -> dict[bytes, list[int]]:
    """The members of a struct by the key of their values; several columns of one key differ in their types.

    An alias leads to the column that has it, unless another column has that name.
    """
    by_key: dict[bytes, list[int]] = {}
    for member, field in members.items():
        by_key.setdefault(field_name(field).encode(), []).append(member)
    for member, field in members.items():
        for alias in aliases(field):
            by_key.setdefault(alias.encode(), [member])
    return by_key


def _reading_of(node: Node) -> tuple[int, int, int]:
    """The op that reads a buffer, and its two parameters."""
    reading, kind = reading_of(node.field), node.field.type
    if pa.types.is_decimal128(kind):
        return READ_DECIMAL if reading is None else READ_DECIMAL_BYTES, kind.scale, kind.precision
    if reading is not None:
        return (*_READINGS[reading], 0)
    read: int = _BY_BUFFER_KIND[node.buffer_kind] if node.buffer_kind in _BY_BUFFER_KIND else _BY_TYPE[node.field.type]
    return read, 0, 0


def _hash_table(keys: Mapping[int, bytes]) -> list[int]:
    """A table with open addressing, at most half full: the number of a key, or 0."""
    size = 2
    while size < 2 * len(keys):
        size *= 2
    table = [0] * size
    for number, key in keys.items():
        slot = json_rows.hash_of(read_only(key), 0, len(key)) & (size - 1)
        while table[slot]:
            slot = (slot + 1) & (size - 1)
        table[slot] = number
    return table
