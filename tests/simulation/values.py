"""The values of a simulated topic with a typed table: five formats, fields that change, and broken values.

Which value a record has is decided when it is sent; the payload of the record, which is a number of its own, is in each
field. The registry fails by chance, and gets some schemas later than the topic gets values that have them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kafka_io.errors import NetworkError, SchemaRegistryUnavailable
from kafka_io.schema_registry.client import SchemaIdT, SchemaRegistry
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from resources.settings.topic_formats import TopicFormat
from tests.simulation.scheduler import Scheduler

Encoding = Literal["avro", "protobuf", "json", "debezium", "text"]
ENCODINGS: Mapping[Encoding, int] = {"avro": 4, "protobuf": 2, "json": 3, "debezium": 2, "text": 1}
"""The formats, and how many of ten topics have them on average."""
REGISTERED: Sequence[Encoding] = ("avro", "protobuf")
"""The formats whose schemas are in a registry."""
_NAMES = ("a", "b", "c", "A")
_MAX_SCHEMAS = 8
_NEVER_REGISTERED = 99
_FIRST_MESSAGE = b"\0"
"""The path of the first message of a Protobuf file."""
_NO_LIMIT = {"max_bad_share": 1}
_LIMITS: Sequence[Mapping[str, object]] = (
    _NO_LIMIT,
    _NO_LIMIT,
    {"max_bad_share": 0.3},
    {"max_bad_share": 1, "max_bad_records": 2},
    {"bad_records": "fail"},
)


def _varint(number: int) -> bytes:
    """A varint of Protobuf, from 0 on."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _zigzag(number: int) -> bytes:
    """A long of Avro, from 0 on."""
    return _varint(number << 1)


def _with_length(text: str) -> bytes:
    """A string of Protobuf."""
    return _varint(len(text)) + text.encode()


class FieldKind(NamedTuple):
    """A type: its value for a payload, and the bytes of this value in Avro and Protobuf.

    `wire_type` and `name` are those of Protobuf.
    """

    value: Callable[[int], object]
    avro: Callable[[int], bytes]
    protobuf: Callable[[int], bytes]
    wire_type: int
    name: str


KINDS: Mapping[str, FieldKind] = {
    "long": FieldKind(lambda payload: payload, _zigzag, _varint, 0, "int64"),
    "string": FieldKind(
        str,
        lambda payload: _zigzag(len(str(payload))) + str(payload).encode(),
        lambda payload: _with_length(str(payload)),
        2,
        "string",
    ),
    "boolean": FieldKind(
        lambda payload: payload % 2 == 0,
        lambda payload: bytes([payload % 2 == 0]),
        lambda payload: bytes([payload % 2 == 0]),
        0,
        "bool",
    ),
}
"""The types of fields. No column of one of them takes values of another one."""


def _tag(name: str, kind: str) -> int:
    """The number of a field in Protobuf: a field that gets another type gets another number, too."""
    return _NAMES.index(name) * len(KINDS) + list(KINDS).index(kind) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SimSchema:
    """A schema of a registry: the names of its fields, with their types."""

    id: int
    fields: Mapping[str, str]

    def registered(self, encoding: Encoding) -> RegisteredSchema:
        """The schema as the registry returns it."""
        if encoding == "protobuf":
            lines = [f"optional {KINDS[kind].name} {name} = {_tag(name, kind)};" for name, kind in self.fields.items()]
            text = f'syntax = "proto3"; message Click {{ {" ".join(lines)} }}'
            return RegisteredSchema(id=self.id, schema_type=SchemaType.PROTOBUF, text=text)
        fields = [{"name": name, "type": kind} for name, kind in self.fields.items()]
        text = json.dumps({"type": "record", "name": "Click", "fields": fields})
        return RegisteredSchema(id=self.id, schema_type=SchemaType.AVRO, text=text)

    def encode(self, payload: int, encoding: Encoding) -> bytes:
        """The value of a record with this payload in every field."""
        frame = b"\0" + self.id.to_bytes(4, "big")
        fields = {name: KINDS[kind].value(payload) for name, kind in self.fields.items()}
        match encoding:
            case "avro":
                return frame + b"".join(KINDS[kind].avro(payload) for kind in self.fields.values())
            case "protobuf":
                parts = [
                    bytes([_tag(name, kind) << 3 | KINDS[kind].wire_type]) + KINDS[kind].protobuf(payload)
                    for name, kind in self.fields.items()
                ]
                return frame + _FIRST_MESSAGE + b"".join(parts)
            case "json":
                return json.dumps(fields).encode()
            case "debezium":
                return json.dumps({"before": None, "after": fields, "op": "c", "ts_ms": payload}).encode()
            case "text":
                return str(payload).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimValue:
    """The value of a record: its bytes, and its schema if it can be decoded. A tombstone has neither."""

    data: bytes | None
    schema: SimSchema | None = None


class SimRegistry(SchemaRegistry):
    """A registry that does not answer by chance. `note` is called with each answer: an id, and whether it is known."""

    def __init__(self, scheduler: Scheduler, encoding: Encoding, note: Callable[[int, bool], None]) -> None:
        super().__init__("main", SchemaRegistrySettings(url="http://registry.invalid"))
        self.schemas: dict[int, SimSchema] = {}
        self._encoding = encoding
        self._scheduler = scheduler
        self._note = note

    def known_schemas(self, schema_ids: Iterable[SchemaIdT]) -> dict[SchemaIdT, RegisteredSchema]:
        """See SchemaRegistry. No schema has a GUID."""
        known: dict[SchemaIdT, RegisteredSchema] = {}
        for schema_id in schema_ids:
            if isinstance(schema_id, str):  # bytes that do not decode can look like a frame with a GUID
                continue
            id_ = int(schema_id)
            self._scheduler.seam()
            if self._scheduler.harmed(0.3):
                raise self._scheduler.rng.choice((SchemaRegistryUnavailable("500"), NetworkError("no answer in time")))
            self._note(id_, id_ in self.schemas)
            if id_ in self.schemas:
                known[schema_id] = self.schemas[id_].registered(self._encoding)
        return known


@dataclass(slots=True, kw_only=True)
class SimValues:
    """The values of all records by payload, and the schemas of the topic.

    Args:
        encoding: how all values of the topic are encoded.
        schemas: all schemas so far; values have the newest one, or by chance an older one.
        late: the schemas that the registry does not have yet.
    """

    scheduler: Scheduler
    registry: SimRegistry
    encoding: Encoding
    by_payload: dict[int, SimValue] = field(default_factory=dict)
    schemas: list[SimSchema] = field(default_factory=lambda: [SimSchema(id=1, fields={"a": "long"})])
    late: list[SimSchema] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registry.schemas[1] = self.schemas[0]

    def send(self, payloads: Iterable[int]) -> None:
        """Choose the values of new records."""
        for payload in payloads:
            self.by_payload[payload] = self._value(payload)

    def _value(self, payload: int) -> SimValue:
        rng = self.scheduler.rng
        schema = self.schemas[-1] if rng.random() < 0.7 else rng.choice(self.schemas)
        data = schema.encode(payload, self.encoding)
        if rng.random() < 0.9:
            return SimValue(data=data, schema=schema)
        if self.encoding not in REGISTERED:
            cut = b"\xc3" if self.encoding == "text" else data[:-1]
            return SimValue(data=rng.choice((None, b"\xff", cut, data + b"\xff")))
        unknown = data[:1] + _NEVER_REGISTERED.to_bytes(4, "big") + data[5:]
        return SimValue(data=rng.choice((None, None, b"", b"\1" + data[1:], data[:-1], data + b"\0", unknown)))

    def change(self) -> str:
        """Add a field, drop one, give one another type, or reorder them; returns a line for the trace."""
        rng, fields = self.scheduler.rng, dict(self.schemas[-1].fields)
        if len(self.schemas) == _MAX_SCHEMAS:
            return "no further schema"
        name = rng.choice(_NAMES)
        if name in fields and len(fields) > 1 and rng.random() < 0.4:
            del fields[name]
        else:
            fields[name] = rng.choice(list(KINDS))
        order = rng.sample(list(fields), len(fields))
        schema = SimSchema(id=len(self.schemas) + 1, fields={name: fields[name] for name in order})
        self.schemas.append(schema)
        self.late.append(schema)
        if rng.random() < 0.7:
            self.publish()
        return f"the schema {schema.id} has {schema.fields}{', but the registry does not know it' * bool(self.late)}"

    def publish(self) -> None:
        """The registry gets the schemas that it lacks."""
        self.registry.schemas |= {schema.id: schema for schema in self.late}
        self.late = []

    def format(self, *, lenient: bool) -> TopicFormat:
        """The format of the topic for one run. Its limits for records that do not decode are random."""
        limits = _NO_LIMIT if lenient else self.scheduler.rng.choice(_LIMITS)
        registry = {"registry": "main"} if self.encoding in REGISTERED else {}
        return TopicFormat.model_validate({"format": self.encoding, **registry, **limits})
