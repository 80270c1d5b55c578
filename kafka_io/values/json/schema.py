"""JSON Schema (draft 4 to 2020-12) to columns.

These keywords are understood: `type`, `properties`, `items`, `additionalProperties` as the type of a map's values,
`enum`, `const`, the formats `date` and `date-time`, and `contentEncoding: base64`. So are `$ref` inside the schema, to
references and to the `$id` of a schema in them, `oneOf`, `anyOf` and `type` with `null`, and the titles that Kafka
Connect's converter writes. What is not understood, and a schema that contains itself, becomes JSON text. All columns
are nullable: `required` and limits of values are not checked.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Self
from urllib.parse import unquote, urljoin

import pyarrow as pa

from kafka_io.values.columns import tags_of, with_tags
from kafka_io.values.json.reading import JsonReading, json_field, json_text

_UTC = pa.timestamp("us", tz="UTC")
_MAX_DEPTH, _MAX_FIELDS = 32, 10_000
_SCALARS = {"integer": pa.int64(), "number": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
_FORMATS = {"date": pa.date32(), "date-time": _UTC}
# Titles of Kafka Connect's logical types.
_CONNECT = {
    "org.apache.kafka.connect.data.Timestamp": (_UTC, JsonReading.EPOCH_MILLIS),
    "org.apache.kafka.connect.data.Date": (pa.date32(), JsonReading.EPOCH_DAYS),
}


def columns_of_json_schema(schema: str, references: Mapping[str, str] | None = None) -> pa.Schema:
    """The columns of a JSON Schema.

    >>> columns_of_json_schema('{"type": "object", "properties": {"id": {"type": "integer"}}}')
    id: int64

    Args:
        schema: the text of the schema.
        references: the texts of other schemas, by the names that `$ref` uses.

    Raises:
        ValueError: the text is no JSON, or the schema describes no object with properties, or more than 10,000 fields.
    """
    root = _loaded(schema)
    documents = _Documents(root, {name: _loaded(text) for name, text in (references or {}).items()})
    field = _SchemaReader(root, documents, count(1), {}).field("", root, ())
    if not pa.types.is_struct(field.type):
        raise ValueError("the JSON Schema describes no object with properties, so it has no columns")
    return pa.schema(list(field.type))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the JSON Schema is not valid JSON: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What a schema says about its values, wherever it is used.

    Args:
        only: the only alternative of the schema that is not null; the schema itself if it has no alternatives.
        type_name: the only type besides null; None if it has several.
    """

    only: Any
    type_name: str | None

    @classmethod
    def of(cls, schema: dict[str, Any]) -> Self:
        """Read the lists of the schema."""
        return cls(only=_without_null(schema), type_name=_type_name(schema))


class _Documents:
    """The schemas that `$ref` can lead to: the references by name, and all schemas with an `$id` by its URL."""

    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:
        self._root = root
        self._references = references

    def at(self, place: str, document: Any) -> Any:
        """The schema at a place that a `$ref` in a document names; None if it is not known."""
        url = _url(_id(document), place)
        known = (self._references.get(place), self._references.get(url), self._by_id.get(url))
        return next((schema for schema in known if schema is not None), None)

    @cached_property
    def _by_id(self) -> Mapping[str, Any]:
        by_id: dict[str, Any] = {}
        for document in (*self._references.values(), self._root):
            base, waiting = _id(document), [document]
            while waiting:
                schema = waiting.pop()
                if isinstance(schema, dict):
                    if _id(schema):
                        by_id[_url(base, _id(schema)).removesuffix("#")] = schema
                    waiting += schema.values()
                elif isinstance(schema, list):
                    waiting += schema
        return by_id


def _id(schema: Any) -> str:
    """The URL of a schema; draft 4 has it in `id`."""
    own = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    return own if isinstance(own, str) else ""


def _url(base: str, place: str) -> str:
    """The absolute URL of a place in a document; the place itself if it cannot be made absolute."""
    with suppress(ValueError):
        return urljoin(base, place)
    return place


class _SchemaReader:
    """Reads the fields of one schema.

    Args:
        root: the schema.
        documents: other schemas that it refers to.
        numbers: the numbers of the fields; schemas that use each other multiply them.
        kinds: the kind of each schema that was read, by its identity. Thousands of fields can refer to a schema with
            a long list of constants or alternatives, which is read only once.
    """

    def __init__(self, root: Any, documents: _Documents, numbers: Iterator[int], kinds: dict[int, _Kind]) -> None:
        self._root = root
        self._documents = documents
        self._numbers = numbers
        self._kinds = kinds

    def field(self, name: str, schema: Any, inside: tuple[int, ...]) -> pa.Field:
        """The field of a schema with its tags; `inside` are the schemas around it."""
        declared = [part for part in (schema, self._resolved(schema, self._root)[0]) if isinstance(part, dict)]
        return with_tags(self._field(name, schema, inside), [tag for part in declared for tag in tags_of(part)])

    def _field(self, name: str, schema: Any, inside: tuple[int, ...]) -> pa.Field:
        if next(self._numbers) > _MAX_FIELDS:
            raise ValueError(f"the JSON Schema has more than {_MAX_FIELDS} fields")
        schema, document = self._resolved(schema, self._root)
        if document is not self._root:
            return _SchemaReader(document, self._documents, self._numbers, self._kinds).field(name, schema, inside)
        if not isinstance(schema, dict):
            return json_text(name)
        comment = str(schema.get("description", ""))
        if id(schema) in inside or len(inside) >= _MAX_DEPTH:
            return json_text(name, comment)
        inside = (*inside, id(schema))
        kind = self._kind(schema)
        if kind.only is not schema:
            field = self.field(name, kind.only, inside)
            return json_field(name, field.type, None, comment).with_metadata(
                {**(field.metadata or {}), **({b"comment": comment.encode()} if comment else {})} or None
            )
        connect = _CONNECT.get(str(schema.get("title")))
        if connect is not None:
            return json_field(name, connect[0], connect[1], comment)
        arrow_type = self._type(schema, kind.type_name, inside)
        return json_text(name, comment) if arrow_type is None else json_field(name, arrow_type, None, comment)

    def _kind(self, schema: dict[str, Any]) -> _Kind:
        kind = self._kinds.get(id(schema))
        if kind is None:
            kind = self._kinds[id(schema)] = _Kind.of(schema)
        return kind

    def _resolved(self, schema: Any, document: Any) -> tuple[Any, Any]:
        """The schema that `$ref` leads to, and the document that it is in; None if it leads nowhere."""
        for _ in range(_MAX_DEPTH):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema, document
            place, _, pointer = str(schema["$ref"]).partition("#")
            document = self._documents.at(place, document) if place else document
            schema = _at_pointer(document, pointer)
        return None, document

    def _type(self, schema: dict[str, Any], name: str | None, inside: tuple[int, ...]) -> pa.DataType | None:
        """The type of the values of a schema with this type name; None if it is not understood."""
        if name == "object":
            return self._object(schema, inside)
        if name == "array":
            items = schema.get("items")
            return pa.list_(self.field("item", items, inside)) if isinstance(items, dict) else None
        if name == "string" and schema.get("contentEncoding") == "base64":
            return pa.binary()
        if name == "string":
            return _FORMATS.get(str(schema.get("format")), pa.string())
        return _SCALARS.get(str(name))

    def _object(self, schema: dict[str, Any], inside: tuple[int, ...]) -> pa.DataType | None:
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if isinstance(properties, dict) and properties:
            return pa.struct([self.field(str(name), member, inside) for name, member in properties.items()])
        if isinstance(others, dict) and others:
            return pa.map_(pa.string(), self.field("value", others, inside))
        return None


def _at_pointer(document: Any, pointer: str) -> Any:
    """The part of a document that a JSON Pointer (RFC 6901) in a URL leads to. None if it leads nowhere."""
    for part in unquote(pointer).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        elif isinstance(document, dict):
            document = document.get(key)
        else:
            return None
    return document


def _without_null(schema: dict[str, Any]) -> Any:
    """The only alternative of `oneOf`, `anyOf` or `allOf` that is not null; the schema itself if it has none."""
    for key in ("oneOf", "anyOf", "allOf"):
        alternatives = schema.get(key)
        if isinstance(alternatives, list) and "properties" not in schema:
            not_null = [
                alternative
                for alternative in alternatives
                if not (isinstance(alternative, dict) and alternative.get("type") == "null")
            ]
            return not_null[0] if len(not_null) == 1 else {}
    return schema


def _type_name(schema: Mapping[str, Any]) -> str | None:
    """The only type of a schema besides null; None if it has several."""
    kinds = schema.get("type")
    if kinds is None and isinstance(schema.get("properties"), dict):
        return "object"
    if kinds is None:
        constants = schema.get("enum", [schema["const"]] if "const" in schema else [])
        kinds = _types_of(constants if isinstance(constants, list) else [])
    names = {str(kind) for kind in (kinds if isinstance(kinds, list) else [kinds])} - {"null"}
    if names == {"integer", "number"}:
        return "number"
    return names.pop() if len(names) == 1 else None


def _types_of(constants: Iterable[Any]) -> list[str]:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return [names.get(type(constant), "other") for constant in constants]
