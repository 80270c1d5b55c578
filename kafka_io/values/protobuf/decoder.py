"""Protobuf values to rows. Schemas and message types may alternate from value to value; all fill the same buffers."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from kafka_io.errors import InvalidSchema, printable
from kafka_io.jit.scalars import ByteArray, Int32s, read_only
from kafka_io.values.arrays import bodies_of, bytes_of
from kafka_io.values.column_buffers import ColumnBuffers
from kafka_io.values.decoding import NO_IDS, DecodedValues, FailedValue, in_order
from kafka_io.values.framing import MessagePaths, SchemaFrames, read_frames, read_message_paths
from kafka_io.values.kernels import protobuf_program, protobuf_rows
from kafka_io.values.protobuf.columns import ProtobufNode, type_node
from kafka_io.values.protobuf.descriptors import ProtobufSchema, message_class
from kafka_io.values.protobuf.misread import misread_field
from kafka_io.values.protobuf.program import MessagePrograms

_REASONS = {
    protobuf_program.UNUSUAL: "the value is not a message of its type",
    protobuf_program.CUT: "the value ends before this field does",
    protobuf_program.BAD_TAG: "a field has no valid number",
    protobuf_program.BAD_NUMBER: "a number is longer than 64 bits, or the value ends before it does",
    protobuf_program.BAD_LENGTH: "a length is greater than the bytes that are left",
    protobuf_program.BAD_TEXT: "a text is not valid UTF-8",
    protobuf_program.BAD_GROUP: "a group ends that did not begin",
    protobuf_program.BAD_WIRE: "a field has an unknown wire type",
    protobuf_program.WRONG_WIRE: "the field has another wire type than in the schema",
    protobuf_program.BAD_TIME: "a time is not between the years 1 and 9999, or a duration longer than 10,000 years",
    protobuf_program.INEXACT: "the column has doubles, and would round the number",
    protobuf_program.TOO_DEEP: f"messages are nested deeper than {protobuf_program.MAX_DEPTH} levels",
}
FIRST_MESSAGE = ""
"""The message type that is the first one of the file, whatever its name."""
_NO_ENTRY = -1
# States of a value with the result UNUSUAL: google.protobuf has written it again, or cannot read it.
_USUAL, _NOT_READABLE = 1, 2


class _NoJson(Exception):
    """A value has no JSON; the message says why."""


@dataclass(slots=True)
class _Bodies:
    """The messages that one call decodes; see `decode_rows` for the arrays."""

    data: ByteArray
    starts: Int32s
    ends: Int32s
    entries: Int32s
    canonical: ByteArray

    def body(self, row: int) -> bytes:
        """The bytes of a message."""
        return self.data[self.starts[row] : self.ends[row]].tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class _MessageType:
    """A message type that has a program."""

    entry: int
    node: ProtobufNode


class ProtobufDecoder:
    """Decodes Protobuf values into columns that were fixed before.

    `columns.py` of this package says which column each type has. A value is refused, with its reason, if
    google.protobuf refuses it, and also if a field has another wire type than in the schema, a text is not UTF-8, or a
    time is out of range.

    >>> import pyarrow as pa
    >>> from kafka_io import columns_of_protobuf, parse_protobuf
    >>> order = parse_protobuf('syntax = "proto3"; message Order { int32 id = 1; }')
    >>> decoder = ProtobufDecoder(columns_of_protobuf(order), {7: order})
    >>> decoder.decode(pa.array([bytes([0, 0, 0, 0, 7, 0, 8, 42]), None], pa.binary())).rows.to_pylist()
    [{'id': 42}, {'id': None}]

    Args:
        columns: the columns.
        schemas: writers' schemas by id; it may have more of them at a later call. A single schema stands for values
            without a frame.
        message: full name of the only message type that values may have, or FIRST_MESSAGE. By default it is the one
            that each frame names, or the first one of the file if there is no frame.
        planned: the message types of each schema from which the columns are made, by the id of the schema. A value of
            another type is not decoded, because it may have more fields. By default there is no such limit.

    Raises:
        TypeError: a column has a type that no decoder of values fills.
        InvalidSchema: a single schema does not have the message type, or it is too large.
    """

    def __init__(
        self,
        columns: pa.Schema,
        schemas: Mapping[int, ProtobufSchema] | ProtobufSchema,
        message: str | None = None,
        planned: Mapping[int, Collection[str]] | None = None,
    ) -> None:
        self._schemas = schemas
        self._message = message
        self._planned = planned
        self._buffers = ColumnBuffers(columns)
        self._programs = MessagePrograms(self._buffers.nodes)
        self._arrays = self._programs.arrays()
        self._types: list[_MessageType] = []
        self._known: dict[tuple[int, tuple[int, ...]], _MessageType | str] = {}
        self._stack = np.zeros((protobuf_program.MAX_DEPTH + 1, protobuf_program.STACK_COLUMNS), np.int64)
        self._single = None if isinstance(schemas, Mapping) else self._add(schemas, message or schemas.first_message)

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._buffers.columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values. See DecodedValues."""
        unknown: frozenset[int] = frozenset()
        messages: frozenset[tuple[int, str]] = frozenset()
        failures: list[FailedValue] = []
        ids = NO_IDS
        if self._single is not None:
            data, starts, ends = bodies_of(values)
            entries = np.where(starts < 0, _NO_ENTRY, self._single.entry).astype(np.int32)
        else:
            frames = read_frames(values)
            unknown, ids = self._drop_unknown(frames), frames.ids
            paths = read_message_paths(values, frames)
            data, positions = bytes_of(values)
            starts, ends = paths.starts, positions[1:]
            failures += [*frames.failures, *paths.failures]
            entries, messages = self._entries(frames, paths, failures)
        bodies = _Bodies(data, starts, ends, entries, np.zeros(len(values), np.uint8))
        failures += self._fill(bodies)
        rows = self._buffers.take()
        return DecodedValues(
            rows=rows,
            failures=in_order(failures),
            unknown_schemas=unknown,
            unknown_messages=messages,
            schema_ids=ids,
        )

    # Message types

    def _drop_unknown(self, frames: SchemaFrames) -> frozenset[int]:
        """The ids of schemas that the decoder does not have; their values count as null."""
        assert isinstance(self._schemas, Mapping)
        ids = set(np.unique(frames.ids).tolist()) - {-1}
        unknown = frozenset(ids - self._schemas.keys())
        if unknown:
            frames.starts[np.isin(frames.ids, list(unknown))] = -1
        return unknown

    def _entries(
        self, frames: SchemaFrames, paths: MessagePaths, failures: list[FailedValue]
    ) -> tuple[Int32s, frozenset[tuple[int, str]]]:
        """The program of each value, and the message types that were not planned.

        Values whose message type does not exist, or is not wanted, become failures.
        """
        entries = np.full(len(frames.ids), _NO_ENTRY, np.int32)
        rows = np.flatnonzero(paths.starts >= 0)
        if not len(rows):
            return entries, frozenset()
        # Damaged values may name as many paths as there are rows, so nothing here takes rows times paths.
        keys = frames.ids[rows].astype(np.int64) * len(paths.paths) + paths.numbers[rows]
        is_single = keys.min() == keys.max()
        distinct, places = (
            (keys[:1], np.zeros(len(keys), np.int64)) if is_single else np.unique(keys, return_inverse=True)
        )
        types = [
            self._type_or_reason(int(key) // len(paths.paths), paths.paths[int(key) % len(paths.paths)])
            for key in distinct
        ]
        of_keys = np.array([type_.entry if isinstance(type_, _MessageType) else _NO_ENTRY for type_ in types], np.int32)
        entries[rows] = of_keys[places]
        is_refused = np.array([isinstance(type_, str) for type_ in types])[places]
        for row, place in zip(rows[is_refused].tolist(), places[is_refused].tolist(), strict=True):
            failures.append(FailedValue(row=row, reason=str(types[place])))
        return entries, frozenset(type_ for type_ in types if isinstance(type_, tuple))

    def _type_or_reason(self, schema_id: int, path: tuple[int, ...]) -> _MessageType | str | tuple[int, str]:
        """The message type that a frame names, why its values are refused, or the type if it is not planned."""
        assert isinstance(self._schemas, Mapping)
        type_or_reason = self._known.get((schema_id, path))
        if type_or_reason is None:
            try:
                schema = self._schemas[schema_id]
                name = schema.message_at(path).full_name
                if self._planned is not None and name not in self._planned.get(schema_id, ()):
                    return schema_id, name
                wanted = schema.first_message if self._message == FIRST_MESSAGE else self._message
                if wanted in {None, name}:
                    type_or_reason = self._add(schema, name)
                else:
                    type_or_reason = (
                        f"the value is a {printable(name)}, and the columns are those of {printable(wanted)}"
                    )
            except InvalidSchema as error:
                return error.reason
            self._known[schema_id, path] = type_or_reason
        return type_or_reason

    def _add(self, schema: ProtobufSchema, name: str) -> _MessageType:
        """Add the program of a message type."""
        node = type_node(schema, schema.message(name))
        added = _MessageType(entry=self._programs.add(node), node=node)
        self._types.append(added)
        self._arrays = self._programs.arrays()
        return added

    # Rows

    def _fill(self, bodies: _Bodies) -> list[FailedValue]:
        """Fill the buffers with all rows; returns the values that do not decode.

        Values of an unusual form, and values that have no JSON, are rare: all rows are decoded again after these were
        replaced or taken out.
        """
        refused: list[FailedValue] = []
        while True:
            failures = self._run(bodies)
            unusual = failures[failures[:, 1] == protobuf_program.UNUSUAL, 0]
            unusual = unusual[bodies.canonical[unusual] == 0]
            if len(unusual):
                refused += self._make_usual(bodies, unusual.tolist())
                continue
            without_json = self._write_json()
            if not without_json:
                return [*refused, *self._failures(failures)]
            for row, reason in without_json.items():
                bodies.entries[row] = _NO_ENTRY
                refused.append(FailedValue(row=row, reason=reason))

    def _run(self, bodies: _Bodies) -> npt.NDArray[np.int64]:
        """Decode all rows; returns the kernel's table of failures."""
        inputs = (bodies.data, bodies.starts, bodies.ends, bodies.entries, bodies.canonical)
        decode = partial(protobuf_rows.decode_rows, *inputs, self._arrays, self._stack)
        return self._buffers.fill(len(bodies.entries), decode)

    def _failures(self, failures: npt.NDArray[np.int64]) -> Iterator[FailedValue]:
        for row, status, field, position in failures.tolist():
            reason = self._programs.reason_of(field) if status == protobuf_program.REFUSED else _REASONS[status]
            path = printable(self._programs.path_of(field)) if field >= 0 else ""
            yield FailedValue(row=row, reason=f"{path}: {reason} (byte {position})" if path else reason)

    def _make_usual(self, bodies: _Bodies, rows: list[int]) -> list[FailedValue]:
        """Let google.protobuf write values again: merged, each field once, and without unknown fields.

        Returns the values with a field of a wrong wire type. They are taken out, because google.protobuf would leave
        the field out.
        """
        types, refused = {type_.entry: type_ for type_ in self._types}, []
        parts, size = [bodies.data.tobytes()], len(bodies.data)
        bodies.starts, bodies.ends = bodies.starts.copy(), bodies.ends.copy()
        for row in rows:
            bodies.canonical[row] = _USUAL
            type_ = types[int(bodies.entries[row])]
            message = message_class(type_.node.message)()
            try:
                message.ParseFromString(bodies.body(row))
                misread = misread_field(message, type_.node)
                message.DiscardUnknownFields()
                usual = message.SerializePartialToString()
            except (DecodeError, ValueError):
                bodies.canonical[row] = _NOT_READABLE
                continue
            if misread:
                bodies.entries[row] = _NO_ENTRY
                reason = f"{printable(misread)}: {_REASONS[protobuf_program.WRONG_WIRE]}"
                refused.append(FailedValue(row=row, reason=reason))
                continue
            bodies.starts[row], bodies.ends[row] = size, size + len(usual)
            parts.append(usual)
            size += len(usual)
        bodies.data = read_only(b"".join(parts))
        bodies.ends.flags.writeable = False  # as before: numba compiles a kernel again for each kind of array
        return refused

    # JSON

    def _write_json(self) -> dict[int, str]:
        """Replace raw values by JSON; returns the rows of those that have none."""
        refused: dict[int, str] = {}

        def text_of(path: str, type_number: int, row: int, data: bytes) -> bytes:
            try:
                return _json_text(self._programs.json_types[type_number], data)
            except _NoJson as error:
                refused[row] = f"{printable(path)}: {error}"
                return b""

        if self._programs.json_types:
            self._buffers.replace_raw(text_of)
        return refused


def _json_text(message: Any, data: bytes) -> bytes:
    """A message of this type as JSON text: Protobuf's JSON mapping with the names of the `.proto` file.

    This is slow, and only values without a column of their own need it, such as a message that contains itself.
    Integers of 64 bits are texts in it.

    Raises:
        _NoJson: the bytes are not such a message, or the JSON mapping has nothing for it.
    """
    value = message_class(message)()
    try:
        value.ParseFromString(data)
        mapped = json_format.MessageToDict(value, preserving_proto_field_name=True, descriptor_pool=message.file.pool)
        return json.dumps(mapped, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (DecodeError, json_format.Error, UnicodeError, ValueError, TypeError, RecursionError) as error:
        raise _NoJson(f"the message has no JSON ({type(error).__name__})") from error


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    ProtobufDecoder(pa.schema([("value", pa.int64())]), {}).decode(pa.array([], pa.binary()))
