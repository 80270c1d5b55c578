"""Finds the names of the schemas in a registry, and the schema that each record names.

Avro: the full name of the outermost type, such as `shop.Order`. Protobuf: the full name of the message type, which the
index path in the frame of a value chooses. JSON Schema: its `title`. These are the names by which Confluent's
RecordNameStrategy and TopicRecordNameStrategy register schemas.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.errors import InvalidSchema
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.values.avro.schema import parse_avro, type_names
from pipelines.layout.columns import VALUE_SCHEMA_HEADER
from pipelines.schemas.schema_headers import SHORT_ID_BYTES, SchemaHeaders, with_short_ids

SchemaUse = tuple[int | str, str]
"""A schema that a value names by its id or GUID, and the index path of the message type: `0.1` for its second nested
type. It is empty but for Protobuf."""
NamesByPath = Mapping[str, str]
"""The names of a schema by index path: one for the empty path but for Protobuf; none if the schema has no name."""


def names_of(schema: RegisteredSchema) -> NamesByPath:
    """The names of a schema.

    >>> names_of(RegisteredSchema(id=1, schema_type=SchemaType.JSON, text='{"title": "Order"}'))
    {'': 'Order'}

    Raises:
        InvalidSchema: nobody can say it, because the schema is not valid.
    """
    return _NAMES[schema.schema_type](schema)


def _names_of_avro(schema: RegisteredSchema) -> NamesByPath:
    names = type_names(parse_avro(schema.text, [reference.text for reference in schema.references]))
    return {"": names[0]} if names else {}


def _names_of_protobuf(schema: RegisteredSchema) -> NamesByPath:
    from kafka_io.values.protobuf.descriptors import parse_protobuf  # noqa: PLC0415 - few topics need protobuf

    file = parse_protobuf(schema.text, {reference.name: reference.text for reference in schema.references})
    return {".".join(map(str, path)): name for path, name in file.message_names()}


def _names_of_json(schema: RegisteredSchema) -> NamesByPath:
    try:
        declared = json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("the JSON Schema is not valid JSON") from error
    title = declared.get("title") if isinstance(declared, dict) else None
    return {"": title} if title and isinstance(title, str) else {}


_NAMES = {
    SchemaType.AVRO: _names_of_avro,
    SchemaType.PROTOBUF: _names_of_protobuf,
    SchemaType.JSON: _names_of_json,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNames:
    """The names of the schemas that are known so far.

    Args:
        known: the names of each schema by its id.
        by_guid: the ids of the known schemas that have a GUID.
        refused: why other schemas have no names, by the text of the id or the GUID.
        id_bytes: the size of the ids in frames.
        has_paths: whether values of unknown schemas have an index path.
    """

    known: Mapping[int, NamesByPath] = field(default_factory=dict)
    by_guid: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    id_bytes: int = SHORT_ID_BYTES
    has_paths: bool = False

    def of_rows(
        self, values: pa.BinaryArray, headers: pa.ListArray
    ) -> tuple[Sequence[SchemaUse], npt.NDArray[np.int64]]:
        """The schemas that records with these values and headers name, and for each record the place of its own.

        The place of a record that names no schema is -1.
        """
        framed = SchemaHeaders(VALUE_SCHEMA_HEADER, self.by_guid, {}).framed(values, headers)
        with_frames = with_short_ids(framed.values) if self.id_bytes > SHORT_ID_BYTES else framed.values
        ids, paths, numbers = self._frames(with_frames)
        keys = ids.astype(np.int64) * len(paths) + numbers
        distinct = pa.array(keys, mask=ids < 0).dictionary_encode()
        uses: list[SchemaUse] = [
            (key // len(paths), paths[key % len(paths)]) for key in distinct.dictionary.to_pylist()
        ]
        places = distinct.indices.fill_null(-1).to_numpy().astype(np.int64)
        if framed.unknown:
            failed = np.isin(np.arange(len(values)), [failure.row for failure in framed.failures])
            is_lost = values.is_valid().to_numpy(zero_copy_only=False) & (places < 0) & ~failed
            is_lost &= with_frames.is_null().to_numpy(zero_copy_only=False)
            places = np.where(is_lost, len(uses), places)
            uses += [(guid, "") for guid in sorted(framed.unknown)]
        return uses, places

    def _frames(self, values: pa.BinaryArray) -> tuple[npt.NDArray[np.int32], list[str], npt.NDArray[np.int32]]:
        """The id of each value, the different index paths, and the number of the path of each value."""
        # Imported here, because numba is slow to import: the driver makes names, and reads no frames.
        from kafka_io.values.framing import read_frames, read_message_paths  # noqa: PLC0415

        frames = read_frames(values)
        with_path = [id_ for id_ in pc.unique(pa.array(frames.ids)).to_pylist() if id_ >= 0 and self._has_path(id_)]
        if not with_path:
            return frames.ids, [""], np.zeros(len(values), np.int32)
        frames.starts[~np.isin(frames.ids, with_path)] = -1
        paths = read_message_paths(values, frames)
        return frames.ids, ["", *(".".join(map(str, path)) for path in paths.paths)], paths.numbers + 1

    def _has_path(self, id_: int) -> bool:
        names = self.known.get(id_)
        return self.has_paths if names is None else "" not in names and bool(names)
