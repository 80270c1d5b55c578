"""Avro schemas as objects [Avro 1.12 specification, Schema Declaration].

Schemas come from a registry and are not trusted: whatever the text is, it gives a schema or an InvalidSchema. Rules
that decoding does not need are not enforced, because registries hold schemas that older libraries accepted: the
characters of names, and whether a default fits its field.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_io.errors import InvalidSchema, printable
from kafka_io.values.columns import tags_of

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_MAX_DEPTH = 100
_LOGICAL = {
    "int": {"date", "time-millis"},
    "long": {
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "timestamp-nanos",
        "local-timestamp-millis",
        "local-timestamp-micros",
        "local-timestamp-nanos",
    },
    "string": {"uuid"},
}
_CONNECT = {
    ("int", "io.debezium.time.Date"): "date",
    ("int", "io.debezium.time.Time"): "time-millis",
    ("long", "io.debezium.time.MicroTime"): "time-micros",
    ("long", "io.debezium.time.NanoTime"): "time-nanos",
    ("long", "io.debezium.time.Timestamp"): "local-timestamp-millis",
    ("long", "io.debezium.time.MicroTimestamp"): "local-timestamp-micros",
    ("long", "io.debezium.time.NanoTimestamp"): "local-timestamp-nanos",
}
"""The logical types of numbers that only have a name of Debezium, in `connect.name`."""
_FIXED_LOGICAL = {"duration": 12, "uuid": 16}
"""Logical types of a fixed type, with the size that they require."""
_MAX_SCALE = 38
NO_DEFAULT = object()
"""The default of a field that has none; null is a default."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without a name; `logical` is empty, or one of the logical types of `name`.

    If `is_connect`, only Debezium's name of the type says which logical type it has.
    """

    name: str
    logical: str = ""
    is_connect: bool = False


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal in big-endian two's complement: in `size` bytes, or in as many as precede it if `size` is -1.

    `names` are as of `type_names`; in bytes it has none.
    """

    scale: int
    size: int = -1
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """A fixed number of bytes; `logical` is empty, "duration" or "uuid". `names` are as of `type_names`."""

    size: int
    logical: str = ""
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Enumeration:
    """One of several symbols. `names` are as of `type_names`."""

    symbols: tuple[str, ...]
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of items."""

    items: "AvroType"


@dataclass(frozen=True, slots=True)
class Map:
    """Values with texts as keys."""

    values: "AvroType"


@dataclass(frozen=True, slots=True)
class Union:
    """A value of one of several types."""

    branches: "tuple[AvroType, ...]"


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record.

    `aliases` are its earlier names, `tags` what Confluent's `confluent:tags` says, `default` is its default as JSON, or
    NO_DEFAULT.
    """

    name: str
    type: "AvroType"
    doc: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    default: Any = field(default=NO_DEFAULT, compare=False, repr=False)


@dataclass(slots=True, eq=False)
class RecordType:
    """A record. A recursive type refers to this very object, so records are compared by identity.

    `aliases` are the full names that it had before.
    """

    name: str
    fields: list[RecordField] = field(default_factory=list, repr=False)
    aliases: tuple[str, ...] = ()


AvroType = Primitive | Decimal | FixedBytes | Enumeration | Array | Map | Union | RecordType


def type_names(avro: AvroType) -> tuple[str, ...]:
    """The full name of a type, and after it the full names that the type had before; empty for a type without a name.

    >>> type_names(parse_avro('{"type": "enum", "name": "a.New", "aliases": ["Old"], "symbols": []}'))
    ('a.New', 'a.Old')
    """
    match avro:
        case RecordType():
            return (avro.name, *avro.aliases)
        case Enumeration() | FixedBytes() | Decimal():
            return avro.names
        case _:
            return ()


def parse_avro(text: str, references: Iterable[str] = (), *, has_local_times: bool = True) -> AvroType:
    """The type that a schema declares.

    >>> parse_avro('["null", {"type": "long", "logicalType": "timestamp-millis"}]').branches[1].logical
    'timestamp-millis'

    Args:
        text: the schema as JSON.
        references: the schemas that it refers to by name, each after those that it needs itself.
        has_local_times: whether times without a zone have types of their own. Otherwise they are times in UTC.

    Raises:
        InvalidSchema: one of them is not a valid schema.
    """
    parser = _Parser(has_local_times)
    for reference in references:
        parser.parse(reference)
    return parser.parse(text)


class _Parser:
    """Collects the named types, because a type may be used after its declaration and inside it."""

    def __init__(self, has_local_times: bool) -> None:
        self._has_local_times = has_local_times
        self._named: dict[str, AvroType] = {}
        self._depth = 0

    def parse(self, text: str) -> AvroType:
        try:
            declared = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"the Avro schema is not JSON: {printable(error)}") from error
        return self._type(declared, "")

    def _type(self, declared: Any, namespace: str) -> AvroType:
        if self._depth > _MAX_DEPTH:
            raise InvalidSchema(f"the Avro schema is nested deeper than {_MAX_DEPTH} levels")
        self._depth += 1
        try:
            match declared:
                case str():
                    return self._reference(declared, namespace)
                case list():
                    return self._union(declared, namespace)
                case {"type": kind}:
                    return self._declared(kind, declared, namespace)
            raise InvalidSchema(f"an Avro type is a name, a list or an object with `type`, not {_shown(declared)}")
        finally:
            self._depth -= 1

    def _reference(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        known = self._named.get(_full_name(name, namespace), self._named.get(name))
        if known is None:
            raise InvalidSchema(f"the Avro schema uses the type {printable(name)} and does not declare it before")
        return known

    def _union(self, branches: Sequence[Any], namespace: str) -> Union:
        types = tuple(self._type(branch, namespace) for branch in branches)
        if any(isinstance(branch, Union) for branch in types):
            raise InvalidSchema("an Avro union directly contains another union")
        return Union(types)

    def _declared(self, kind: Any, declared: Mapping[str, Any], namespace: str) -> AvroType:  # noqa: PLR0911 - as many kinds
        match kind:
            case "array":
                return Array(self._type(declared.get("items"), namespace))
            case "map":
                return Map(self._type(declared.get("values"), namespace))
            case "record" | "error":
                return self._record(declared, namespace)
            case "enum":
                names = _declared_names(declared, namespace)
                return self._named_type(names, Enumeration(_texts(declared, "symbols"), names))
            case "fixed":
                names = _declared_names(declared, namespace)
                return self._named_type(names, replace(_fixed(declared), names=names))
            case str() if kind in PRIMITIVES:
                avro = _primitive(kind, declared)
                if isinstance(avro, Decimal) or self._has_local_times:
                    return avro
                return replace(avro, logical=avro.logical.removeprefix("local-"))
        return self._type(kind, namespace)

    def _named_type(self, names: Sequence[str], named: AvroType) -> AvroType:
        full_name = names[0]
        if full_name in self._named:
            raise InvalidSchema(f"the Avro schema declares the type {printable(full_name)} twice")
        self._named[full_name] = named
        return named

    def _record(self, declared: Mapping[str, Any], namespace: str) -> RecordType:
        names = _declared_names(declared, namespace)
        full_name = names[0]
        record = RecordType(full_name, aliases=names[1:])
        self._named_type(names, record)
        inner_namespace = full_name.rpartition(".")[0]
        for declaration in _list(declared, "fields"):
            if not isinstance(declaration, dict):
                raise InvalidSchema(f"a field of the Avro record {printable(full_name)} is not an object")
            doc = declaration.get("doc")
            record.fields.append(
                RecordField(
                    name=_text(declaration, "name"),
                    type=self._type(declaration.get("type"), inner_namespace),
                    doc=doc if isinstance(doc, str) and _is_unicode(doc) else "",
                    aliases=_texts(declaration, "aliases") if "aliases" in declaration else (),
                    default=declaration.get("default", NO_DEFAULT),
                    tags=tags_of(declaration),
                )
            )
        field_names = [field.name for field in record.fields]
        if len(set(field_names)) < len(field_names):
            raise InvalidSchema(f"the Avro record {printable(full_name)} has two fields with the same name")
        return record


def _primitive(kind: str, declared: Mapping[str, Any]) -> Primitive | Decimal:
    """A primitive with its logical type. As specified, an unknown or invalid logical type counts as none."""
    logical = declared.get("logicalType")
    if kind == "bytes" and logical == "decimal":
        scale = _decimal_scale(declared, None)
        return Primitive(kind) if scale is None else Decimal(scale)
    if isinstance(logical, str) and logical in _LOGICAL.get(kind, ()):
        return Primitive(kind, logical)
    of_connect = _CONNECT.get((kind, str(declared.get("connect.name"))), "")
    return Primitive(kind, of_connect, is_connect=bool(of_connect))


def _fixed(declared: Mapping[str, Any]) -> FixedBytes | Decimal:
    size, logical = declared.get("size"), declared.get("logicalType")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
        raise InvalidSchema(f"the size of an Avro fixed type is not a size: {_shown(size)}")
    if logical == "decimal":
        scale = _decimal_scale(declared, size)
        return FixedBytes(size) if scale is None else Decimal(scale, size)
    return FixedBytes(size, logical if isinstance(logical, str) and _FIXED_LOGICAL.get(logical) == size else "")


def _decimal_scale(declared: Mapping[str, Any], size: int | None) -> int | None:
    """Scale of a decimal; None if the declaration is invalid, or no decimal(38, scale) exists."""
    precision, scale = declared.get("precision"), declared.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= min(precision, _MAX_SCALE):
        return None
    digits = math.inf if size is None else (8 * size - 1) * math.log10(2)
    return scale if 0 < precision <= digits else None


def _declared_names(declared: Mapping[str, Any], namespace: str) -> tuple[str, ...]:
    """The full name that a declaration gives to its type, and the full names that the type had before."""
    own = declared.get("namespace")
    full_name = _full_name(_text(declared, "name"), own if isinstance(own, str) else namespace)
    aliases = _texts(declared, "aliases") if "aliases" in declared else ()
    return full_name, *(_full_name(alias, full_name.rpartition(".")[0]) for alias in aliases)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _text(declared: Mapping[str, Any], key: str) -> str:
    value = declared.get(key)
    if not isinstance(value, str) or not _is_unicode(value):
        raise InvalidSchema(f"`{key}` in an Avro schema is not a text: {_shown(value)}")
    return value


def _list(declared: Mapping[str, Any], key: str) -> list[Any]:
    value = declared.get(key)
    if not isinstance(value, list):
        raise InvalidSchema(f"`{key}` in an Avro schema is not a list: {_shown(value)}")
    return value


def _texts(declared: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = _list(declared, key)
    if not all(isinstance(value, str) and _is_unicode(value) for value in values):
        raise InvalidSchema(f"`{key}` in an Avro schema is not a list of texts")
    return tuple(values)


def _is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which JSON can express and UTF-8 cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _shown(value: Any) -> str:
    return "nothing" if value is None else printable(value)
