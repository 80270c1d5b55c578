"""Schemas of all kinds, whole and mutated: each gives columns and a decoder, or a typed error, in bounded time.

Schemas come from a registry, from files and from values, so nobody has checked them. Some of these are made to be
expensive: types that use each other at many levels multiply, and text is repeated.
"""

import base64
import copy
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2

from kafka_io.errors import InvalidSchema
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.avro.columns import columns_of_avro
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.columns import grow
from kafka_io.values.debezium.columns import columns_of_debezium_json, envelope_of
from kafka_io.values.decoding import ValueDecoder
from kafka_io.values.json.decoder import JsonDecoder
from kafka_io.values.json.schema import columns_of_json_schema
from kafka_io.values.protobuf.columns import columns_of_protobuf
from kafka_io.values.protobuf.decoder import ProtobufDecoder
from kafka_io.values.protobuf.descriptors import ProtobufSchema, parse_descriptor_set, parse_protobuf
from kafka_io.values.protobuf.proto_text import file_of_text
from tests.kafka_io.values.avro.making import SchemaMaker, framed, mutated
from tests.kafka_io.values.protobuf.making import ProtoMaker

_MOST_SECONDS = 2.0
_MOST_LEVELS = 70
_MOST_CHARACTERS = 100_000
_TIMES = (2, 3, 40, 2_000)
_MOST_COLUMNS = 500
"""Wider columns take long to grow, and the tables of Penstock have at most 1,000."""
_VALUES = (b"", b"\0", b"\2" * 20, b"\x08\1\x12\2ab", b'{"a": {"a": 1}}', b"\xff" * 20, bytes(200))

_Parse = Callable[[bytes], tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Language:
    """A kind of schemas: `make` creates one, `parse` gives its columns and what makes a decoder, or raises `errors`."""

    make: Callable[[random.Random], bytes]
    parse: _Parse
    errors: type[InvalidSchema] | type[ValueError] = InvalidSchema


def mutated_schema(rng: random.Random) -> bytes:
    """The letter of a language, and a schema."""
    letter = rng.choice(sorted(_LANGUAGES))
    return letter.encode() + _LANGUAGES[letter].make(rng)


def read_schema(data: bytes, _limits: DecodeLimits) -> None:
    """Only make columns."""
    _columns_of(data)


def check_schema(data: bytes, _rng: random.Random) -> str:
    """Check that a schema gives columns that do not grow by themselves and a decoder, or a typed error.

    Returns "read" or "refused".
    """
    start = time.process_time()
    parsed = _columns_of(data)
    assert time.process_time() - start < _MOST_SECONDS
    if parsed is None:
        return "refused"
    fields, decoder_of = parsed
    if len(fields) > _MOST_COLUMNS:
        return "read"
    columns = grow(pa.schema([]), fields)
    assert grow(columns, fields).equals(columns, check_metadata=True)
    columns.serialize()
    try:
        decoded = decoder_of(columns).decode(pa.array([framed(1, body) for body in _VALUES], pa.binary()))
    except InvalidSchema as error:
        return _refused(error)
    decoded.rows.validate(full=True)
    assert decoded.rows.num_rows == len(_VALUES)
    for failure in decoded.failures:
        assert failure.reason.isprintable()
    return "read"


def _refused(error: InvalidSchema | ValueError) -> str:
    reason = error.reason if isinstance(error, InvalidSchema) else str(error)
    assert reason.isprintable()
    return "refused"


def _columns_of(data: bytes) -> tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]] | None:
    """The columns of a schema and its decoder; None if it is refused."""
    language = _LANGUAGES[chr(data[0])]
    try:
        return language.parse(data[1:])
    except language.errors as error:
        _refused(error)
        return None


# What is mutated: a tree of JSON, a text, bytes.

_WORDS = (
    *("type", "name", "fields", "items", "values", "symbols", "size", "aliases", "default", "logicalType"),
    *("properties", "$ref", "#", "#/$defs/a1", "oneOf", "additionalProperties", "format", "enum", "const", "title"),
    *("record", "array", "map", "enum", "fixed", "int", "null", "string", "object", "struct", "field", "schema"),
    *("namespace", "keys", "decimal", "scale", "precision", "payload", "after", "N1", "a.b"),
    *("", ".", "\ud800", "\0", "é", "x" * 300),
)
_NODES: tuple[Any, ...] = (None, True, 0, -1, 1.5, 2**31, 10**30, [], {}, [[]], {"type": "int"}, ["null", "int"])


def _mutated_tree(rng: random.Random, tree: Any) -> Any:
    """A copy of a tree in which a few nodes are others, and one may be inside very many."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        _mutate_node(rng, _places(tree))
    places = _places(tree)
    if places and not rng.randrange(4):
        container, key = rng.choice(places)
        container[key] = _wrapped(rng, container[key])
    return tree


def _mutate_node(rng: random.Random, places: list[tuple[Any, Any]]) -> None:
    """Replace, copy or remove the node in one of these places."""
    if not places:
        return
    container, key = rng.choice(places)
    node = container[key]
    match rng.randrange(5):
        case 0:
            container[key] = copy.deepcopy(rng.choice((*_NODES, *_WORDS)))
        case 1:
            other, place = rng.choice(places)
            container[key] = copy.deepcopy(other[place])
        case 2:
            del container[key]
        case _ if isinstance(container, dict):
            container[rng.choice(_WORDS)] = copy.deepcopy(node)
        case _:
            container.extend(copy.deepcopy(node) for _ in range(rng.choice(_TIMES) // len(json.dumps(node))))


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """The containers and keys of all nodes of a tree except the outermost."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    return [place for key in keys for place in [(tree, key), *_places(tree[key])]]


def _wrapped(rng: random.Random, node: Any) -> Any:
    """A node in many containers around each other."""
    around = rng.choice(
        (
            lambda inner: [inner],
            lambda inner: {"type": inner},
            lambda inner: {"type": "array", "items": inner},
            lambda inner: {"type": "map", "values": inner},
            lambda inner: {"type": "object", "properties": {"a": inner}},
            lambda inner: {"type": "struct", "fields": [{"field": "a", **(inner if isinstance(inner, dict) else {})}]},
        )
    )
    for _ in range(rng.choice((1, 2, 20, 90, 150, 300))):
        node = around(node)
    return node


_PIECES = (
    *("{", "}", "[", "]", "(", ")", "<", ">", ";", ",", "=", '"', "'", "\\", "/*", "*/", "//", "/* ", "\n", " ", "-"),
    *("message A {", "enum E {", "oneof o {", "map<string, M0>", "repeated", "optional", "group G = 1 {", "extend"),
    *("option", "[default = ", "features.", "reserved", "service S {", "syntax", 'import "', "google/protobuf/any"),
    *("0x", "1e9", "-1", "536870912", "2147483648", "inf", "nan", "\x00", "\ud800", "é", "M0", ".made.M0", "string"),
)


def _mutated_text(rng: random.Random, text: str) -> str:
    """A text with a few places changed; a piece may be repeated very often."""
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        first = rng.randrange(len(text) + 1)
        last = min(first + rng.choice((0, 1, 5, 40)), len(text))
        piece = rng.choice((text[first:last], rng.choice(_PIECES), ""))
        times = rng.choice((1, 1, 1, _MOST_CHARACTERS // (len(piece) + 1)))
        text = text[:first] + piece * times + text[last if rng.randrange(2) else first :]
    return text[: 2 * _MOST_CHARACTERS]


def _as_bytes(rng: random.Random, text: str) -> bytes:
    """A text as bytes; half of these texts are mutated. A text of a registry can have halves of surrogate pairs."""
    return (_mutated_text(rng, text) if rng.randrange(2) else text).encode(errors="surrogatepass")


def _as_text(data: bytes) -> str:
    return data.decode(errors="surrogatepass")


# Avro


def _avro(rng: random.Random) -> bytes:
    tree = _avro_levels(rng) if not rng.randrange(4) else SchemaMaker(rng).record()
    return _as_bytes(rng, json.dumps(_mutated_tree(rng, tree)))


def _avro_levels(rng: random.Random) -> Any:
    """Records of which each uses the one before, once or more often, inside arrays."""
    uses, arrays = rng.choice((1, 1, 2, 3)), rng.choice((0, 0, 1, 10, 90))
    fields = []
    for level in range(rng.randrange(1, _MOST_LEVELS)):
        inner: Any = f"R{level - 1}" if level else "int"
        for _ in range(arrays):
            inner = {"type": "array", "items": inner}
        members = [{"name": f"f{place}", "type": inner} for place in range(uses)]
        fields.append({"name": f"r{level}", "type": {"type": "record", "name": f"R{level}", "fields": members}})
    return {"type": "record", "name": "Root", "fields": fields[-1:] if rng.randrange(4) == 0 else fields}


def _parse_avro(data: bytes) -> tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]]:
    schema = parse_avro(_as_text(data))
    return columns_of_avro(schema), lambda columns: AvroDecoder(columns, {1: schema})


# JSON Schema, and the schemas in change events of Debezium


def _json_schema(rng: random.Random) -> bytes:
    tree = _json_levels(rng) if not rng.randrange(4) else _described(rng, 3)
    return _as_bytes(rng, json.dumps(_mutated_tree(rng, tree)))


def _described(rng: random.Random, depth: int) -> Any:
    """A random JSON Schema."""

    def inner() -> Any:
        return _described(rng, depth - 1)

    match rng.randrange(7) if depth else 0:
        case 1:
            return {"type": "array", "items": inner()}
        case 2:
            return {"type": "object", "additionalProperties": inner()}
        case 3:
            return {rng.choice(("oneOf", "anyOf", "allOf")): [{"type": "null"}, inner()]}
        case 4:
            return {"$ref": rng.choice(("#", "#/$defs/a0", "#/properties/a", "other#", "#/%"))}
        case 5 | 6:
            return {"properties": {name: inner() for name in rng.sample("abcA", 2)}, "description": "text"}
    scalar = rng.choice(("integer", "number", "string", "boolean", "null"))
    date = {"type": "string", "format": "date"}
    return rng.choice(({"type": scalar}, {"type": ["null", scalar]}, date, {"const": 1}))


def _json_levels(rng: random.Random) -> Any:
    """Schemas of which each refers to the next one, once or more often."""
    names = "abc"[: rng.choice((1, 2, 3))]
    levels = rng.randrange(1, _MOST_LEVELS)
    definitions = {
        f"a{level}": {"properties": {name: {"$ref": f"#/$defs/a{level + 1}"} for name in names}}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**definitions, f"a{levels}": {"type": "integer"}}}


def _parse_json_schema(data: bytes) -> tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]]:
    return columns_of_json_schema(_as_text(data)), JsonDecoder


def _event(rng: random.Random) -> bytes:
    """A change event with its schema."""

    def schema(depth: int) -> dict[str, Any]:
        match rng.randrange(6) if depth else 0:
            case 1:
                return {"type": "array", "items": schema(depth - 1)}
            case 2:
                return {"type": "map", "keys": {"type": "string"}, "values": schema(depth - 1)}
            case 3 | 4 | 5:
                names = rng.sample("abcA", 2)
                return {"type": "struct", "fields": [{**schema(depth - 1), "field": name} for name in names]}
        return {"type": rng.choice(("int32", "double", "boolean", "string", "bytes"))}

    row = {"type": "struct", "fields": [{**schema(2), "field": name} for name in "ab"]}
    fields = [{**row, "field": "before"}, {**row, "field": "after"}, {"type": "string", "field": "op"}]
    document = {"schema": {"type": "struct", "fields": fields}, "payload": {"op": "c", "after": {"a": 1}}}
    return _as_bytes(rng, json.dumps(_mutated_tree(rng, document)))


def _parse_event(data: bytes) -> tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]]:
    return columns_of_debezium_json([data]), lambda columns: JsonDecoder(envelope_of(columns))


# Protobuf


def _proto(rng: random.Random) -> bytes:
    kind = rng.randrange(10)
    if kind == 0:
        return base64.b64encode(_descriptors(rng))
    if kind == 1:
        levels = rng.randrange(1, _MOST_LEVELS)
        return _as_bytes(rng, "message A { " * levels + "} " * levels)
    return _as_bytes(rng, _message_levels(rng) if kind < 4 else ProtoMaker(rng).text())


def _message_levels(rng: random.Random) -> str:
    """Messages of which each has fields of the next one, one or more."""
    levels, uses = rng.randrange(1, _MOST_LEVELS), rng.choice((1, 2, 3))
    messages = ""
    for level in range(levels):
        fields = " ".join(f"M{level + 1} f{number} = {number};" for number in range(1, uses + 1))
        messages += f"message M{level} {{ {fields} }} "
    return f'syntax = "proto3"; {messages} message M{levels} {{ int32 a = 1; }}'


def _parse_proto(data: bytes) -> tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]]:
    return _of_protobuf(parse_protobuf(_as_text(data), {"other.proto": "message Other {}"}))


def _of_protobuf(schema: ProtobufSchema) -> tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]]:
    return columns_of_protobuf(schema), lambda columns: ProtobufDecoder(columns, {1: schema})


def _descriptors(rng: random.Random) -> bytes:
    """A set of descriptors; most have a few attributes or bytes changed."""
    texts = {"made.proto": ProtoMaker(rng).text(), "other.proto": _message_levels(rng) + 'import "made.proto";'}
    files = [file_of_text(name, text) for name, text in texts.items()]
    message = files[0].message_type[0]
    for _ in range(rng.choice((0, 0, 0, 40, 90))):
        message = message.nested_type.add(name="A")
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        _change_attribute(rng, rng.choice(files))
    data = descriptor_pb2.FileDescriptorSet(file=rng.sample(files, rng.choice((1, 2, 2)))).SerializeToString()
    return data if rng.randrange(3) else mutated(rng, data)


def _change_attribute(rng: random.Random, message: Any) -> None:
    """Change an attribute of a descriptor, or of one inside it."""
    while True:
        inside = [item for field, value in message.ListFields() if field.message_type for item in _items(field, value)]
        if not inside or not rng.randrange(4):
            break
        message = rng.choice(inside)
    field = rng.choice([field for field in message.DESCRIPTOR.fields if field.message_type is None])
    values: Mapping[int, Any] = {field.CPPTYPE_STRING: ("", "a", ".made.M0", "made.proto", "google/protobuf/any")}
    numbers = field.enum_type.values_by_number if field.enum_type else (0, 1, 2, 200, -1, 2**31 - 1)
    if field.type == field.TYPE_BYTES:
        return
    value = rng.choice(list(values.get(field.cpp_type, numbers)))
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, bool(value) if field.cpp_type == field.CPPTYPE_BOOL else value)


def _items(field: Any, value: Any) -> list[Any]:
    return list(value) if field.is_repeated else [value]


def _parse_descriptors(data: bytes) -> tuple[pa.Schema, Callable[[pa.Schema], ValueDecoder]]:
    return _of_protobuf(parse_descriptor_set(data))


_LANGUAGES = {
    "a": _Language(make=_avro, parse=_parse_avro),
    "j": _Language(make=_json_schema, parse=_parse_json_schema, errors=ValueError),
    "e": _Language(make=_event, parse=_parse_event, errors=ValueError),
    "p": _Language(make=_proto, parse=_parse_proto),
    "d": _Language(make=_descriptors, parse=_parse_descriptors),
}
