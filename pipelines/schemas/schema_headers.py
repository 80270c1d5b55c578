"""Schema ids that are not in the usual frame: in a record header, or as a GUID (fault F11).

Newer serializers of Confluent can write the id of the schema into the header `__value_schema_id` or `__key_schema_id`
and leave the value without a frame. The content of the header is that of the frame, with one of these beginnings:

    00 | int32 id, big-endian
    01 | 16 bytes of the schema's GUID, which is the same in all registries that have the schema

After it is the path of the message type, for Protobuf. The second form can also be the frame of a value. All are
written again in the first form, before the value, which all decoders know.

The newer serializers of Azure Event Hubs write the header `content-type` instead (fault F14). Its id is one of Azure's
registry. If the schemas are in another registry, such values have a reason instead of fields. If the settings have the
id and the schema in a file, values get the frame that older serializers of Azure wrote.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.decoding import FailedValue
from pipelines.layout.columns import AZURE_CONTENT, AZURE_HEADER, VALUE_SCHEMA_HEADER

_AZURE_REASON = "the header content-type names a schema of Azure's registry: for Avro, set `avro_file` and `avro_frame`"
SHORT_ID_BYTES = 4
_ID_BYTES, _GUID_BYTES = 1 + SHORT_ID_BYTES, 17
_LONG_ID_BYTES = 9
_NO_PREFIX = -1
_END = 2**31 - 1  # of any slice: without an end, pyarrow 26 fails for each even number of values
_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FramedValues:
    """Values with the usual frame.

    Args:
        values: the values; null for those that fail, and for those whose GUID is not known.
        failures: values whose schema the registry does not have, or whose header is not valid.
        unknown: GUIDs that the registry must be asked for.
    """

    values: pa.BinaryArray
    failures: list[FailedValue]
    unknown: frozenset[str]


class SchemaHeaders:
    """Gives values the usual frame.

    Args:
        header: the name of the header.
        ids: the ids of known schemas by GUID.
        refused: why schemas cannot be used, by GUID.
    """

    def __init__(self, header: str, ids: Mapping[str, int], refused: Mapping[str, str]) -> None:
        self._header = header
        self._ids = ids
        self._refused = refused

    def framed(self, values: pa.BinaryArray, headers: pa.ListArray) -> FramedValues:
        """The values with the usual frame; most topics have nothing to change."""
        values, failures = _without_azure(values, headers) if self._header == VALUE_SCHEMA_HEADER else (values, [])
        unknown: set[str] = set()
        prefixes, codes = [b""], np.zeros(len(values), np.int64)
        bodies = values
        in_header, contents = _contents(headers, self._header)
        in_frame = np.setdiff1d(_with_guid(values), in_header)
        if len(in_frame):
            of_guid = values.take(pa.array(in_frame))
            bodies = _replaced(values, in_frame, pc.binary_slice(of_guid, _GUID_BYTES, _END))
            contents = pa.concat_arrays([contents, pc.binary_slice(of_guid, 0, _GUID_BYTES)])
        if not len(contents):
            return FramedValues(values=values, failures=failures, unknown=frozenset())
        rows = np.concatenate([in_header, in_frame])
        is_present = values.is_valid().to_numpy(zero_copy_only=False)
        distinct = contents.dictionary_encode(null_encoding="encode")
        places = distinct.indices.to_numpy()
        for number, content in enumerate(distinct.dictionary.to_pylist()):
            named = rows[places == number]
            named = named[is_present[named]]
            prefix = self._prefix(content or b"")
            codes[named] = len(prefixes) if isinstance(prefix, bytes) else _NO_PREFIX
            if isinstance(prefix, bytes):
                prefixes.append(prefix)
            elif prefix is None:
                unknown |= {_guid(content)} if len(named) else set()
            else:
                failures += [FailedValue(row=row, reason=prefix.reason) for row in named.tolist()]
        chosen = pa.array(prefixes, pa.binary()).take(pa.array(codes, mask=codes == _NO_PREFIX))
        joined = pc.binary_join_element_wise(chosen, bodies, pa.scalar(b"", pa.binary()))
        return FramedValues(values=joined, failures=failures, unknown=frozenset(unknown))

    def _prefix(self, content: bytes) -> "bytes | _Refusal | None":
        """The usual frame for the content of a header; None if its GUID is not known."""
        if content[:1] == b"\0" and len(content) >= _ID_BYTES:
            return content
        if content[:1] != b"\1" or len(content) < _GUID_BYTES:
            return _Refusal(f"the header {self._header} has no id of a schema")
        guid = _guid(content)
        if guid in self._ids:
            return b"\0" + self._ids[guid].to_bytes(SHORT_ID_BYTES, "big") + content[_GUID_BYTES:]
        return _Refusal(self._refused[guid]) if guid in self._refused else None


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str


def _guid(content: bytes) -> str:
    return str(uuid.UUID(bytes=content[1:_GUID_BYTES]))


def _contents(headers: pa.ListArray, name: str) -> tuple[_Rows, pa.BinaryArray]:
    """The rows that have a header of this name, and its content; of several the first counts."""
    items = headers.flatten()
    is_named = pc.equal(pc.struct_field(items, "key"), name)
    if not is_named.true_count:
        return np.empty(0, np.int64), pa.array([], pa.binary())
    rows = pc.list_parent_indices(headers).filter(is_named).to_numpy()
    first_rows, first = np.unique(rows, return_index=True)
    contents = pc.struct_field(items, "value").filter(is_named).take(pa.array(first))
    return first_rows.astype(np.int64), contents


def with_azure_frames(values: pa.BinaryArray, headers: pa.ListArray) -> pa.BinaryArray:
    """The values with a frame of Azure for each one whose record has the id in its header."""
    rows, ids = _azure_ids(headers)
    if not len(rows):
        return values
    magic, empty = pa.scalar(bytes(4), pa.binary()), pa.scalar(b"", pa.binary())
    return _replaced(values, rows, pc.binary_join_element_wise(magic, ids, values.take(pa.array(rows)), empty))


def _azure_ids(headers: pa.ListArray) -> tuple[_Rows, pa.BinaryArray]:
    """The rows with a header of Azure, and the ids in it."""
    rows, contents = _contents(headers, AZURE_HEADER)
    is_azure = pc.fill_null(pc.starts_with(contents, AZURE_CONTENT), fill_value=False)
    ids = pc.binary_slice(contents.filter(is_azure), len(AZURE_CONTENT), _END)
    return rows[is_azure.to_numpy(zero_copy_only=False)], ids


def _without_azure(values: pa.BinaryArray, headers: pa.ListArray) -> tuple[pa.BinaryArray, list[FailedValue]]:
    """The values with null for each one whose schema is in Azure's registry, and a failure for each of these."""
    rows, _ = _azure_ids(headers)
    rows = rows[values.is_valid().to_numpy(zero_copy_only=False)[rows]]
    if not len(rows):
        return values, []
    failures = [FailedValue(row=row, reason=_AZURE_REASON) for row in rows.tolist()]
    return _replaced(values, rows, pa.nulls(len(rows), values.type)), failures


def _with_guid(values: pa.BinaryArray) -> _Rows:
    """The rows whose value begins with a GUID."""
    has_room = pc.greater_equal(pc.binary_length(values), _GUID_BYTES)
    is_guid = pc.and_(has_room, pc.equal(pc.binary_slice(values, 0, 1), pa.scalar(b"\1", pa.binary())))
    rows: _Rows = pc.indices_nonzero(is_guid).to_numpy().astype(np.int64)
    return rows


def _replaced(values: pa.BinaryArray, rows: _Rows, others: pa.BinaryArray) -> pa.BinaryArray:
    mask = np.zeros(len(values), np.bool_)
    mask[rows] = True
    return pc.replace_with_mask(values, pa.array(mask), others)


def with_short_ids(values: pa.BinaryArray) -> pa.BinaryArray:
    """The values with ids of 4 bytes in the place of those of 8 bytes, if they fit."""
    is_long = pc.and_(
        pc.greater_equal(pc.binary_length(values), _LONG_ID_BYTES),
        pc.equal(pc.binary_slice(values, 0, _ID_BYTES), pa.scalar(bytes(_ID_BYTES), pa.binary())),
    )
    if not is_long.true_count:
        return values
    magic, empty = pa.scalar(b"\0", pa.binary()), pa.scalar(b"", pa.binary())
    shortened = pc.binary_join_element_wise(magic, pc.binary_slice(values, _ID_BYTES, _END), empty)
    return pc.if_else(is_long, shortened, values)
