"""Makes random `.proto` texts and random messages of their types."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message_factory import GetMessageClass

from tests.oracles.protobuf import content_of, fields_of

_SCALARS = (
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64", "bool", "string", "bytes",
)  # fmt: skip
_KEYS = tuple(name for name in _SCALARS if name not in {"double", "float", "bytes"})
_KNOWN = ("Timestamp", "Duration", "Int64Value", "StringValue", "UInt64Value", "BoolValue", "Struct", "Value", "Any")
_DEFAULTS = {
    "int32": "-5",
    "sint64": "-9223372036854775808",
    "uint64": "0xffffffffffffffff",
    "double": "-inf",
    "float": "1.5",
    "bool": "true",
    "string": r'"d\"\303\xa9"',
    "bytes": r'"\000\xff"',
}
_IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "struct", "any")
)
_TEXTS = ("", "a", 'tea & "milk"', "M\u00fcnchen", "\U0001f600", "x" * 300)
_BITS = {"int32": 31, "sint32": 31, "sfixed32": 31, "int64": 63, "sint64": 63, "sfixed64": 63}
_UNSIGNED = {"uint32": 32, "fixed32": 32, "uint64": 64, "fixed64": 64}
_ODD_SECONDS = (-62_135_596_801, 253_402_300_800, 315_576_000_001, -(1 << 63), (1 << 63) - 1)
_LAST_SECONDS = {
    "Timestamp": (-62_135_596_800, -1, 0, 253_402_300_799),
    "Duration": (-315_576_000_000, -1, 0, 315_576_000_000),
}
_TYPE_NAMES = {getattr(Field, f"TYPE_{name.upper()}"): name for name in _SCALARS}


class ProtoMaker:
    """Makes the text of a `.proto` file whose first message is `made.M0`.

    Args:
        rng: the source of randomness.
        names: names for fields, instead of `f0`, `f1` ...
    """

    def __init__(self, rng: random.Random, names: Sequence[str] = ()) -> None:
        self._rng = rng
        self._field_names = names
        self._is_proto2 = rng.random() < 0.4
        self._messages = rng.randrange(1, 5)

    def text(self) -> str:
        """The text."""
        enum = "enum Kind { ZERO = 0; ONE = 1; NEGATIVE = -3; FAR = 70000; }"
        messages = "".join(self._message(f"M{index}") for index in range(self._messages))
        extensions = "".join(self._extensions(f"M{index}") for index in range(self._messages))
        start = f'syntax = "proto{3 - self._is_proto2}"; package made; {_IMPORTS}'
        return f"{start}{messages}message Empty {{}} {enum} {extensions}"

    def _message(self, name: str) -> str:
        numbers, count = self._numbers(), self._rng.randrange(0 if name != "M0" else 1, 8)
        names = self._rng.sample(self._field_names, count) if self._field_names else [f"f{n}" for n in range(count)]
        parts = [self._part(index, field_name, numbers) for index, field_name in enumerate(names)]
        parts += ["extensions 100000 to max;"] if self._is_proto2 else []
        return f"message {name} {{ {' '.join(parts)} }} "

    def _extensions(self, name: str) -> str:
        """The extensions of a message of proto2. Those of the first message have names of its fields."""
        if not self._is_proto2 or self._rng.random() < 0.6:
            return ""
        labels = [self._rng.choice(("optional", "optional", "repeated")) for _ in range(self._rng.randrange(1, 3))]
        names = [f"f{number}" if name == "M0" else f"x{number}_{name}" for number in range(len(labels))]
        fields = (
            f"{label} {self._type()} {field} = {100_000 + 7 * number};"
            for number, (label, field) in enumerate(zip(labels, names, strict=True))
        )
        return f"extend {name} {{ {' '.join(fields)} }} "

    def _numbers(self) -> Iterator[int]:
        number = 0
        while True:
            number += 1 if self._rng.random() < 0.8 else self._rng.choice((2, 9, 5000))
            yield number

    def _part(self, index: int, name: str, numbers: Iterator[int]) -> str:
        rng = self._rng
        match rng.randrange(10):
            case 0:
                members = " ".join(
                    f"{self._type()} {name}_{member} = {next(numbers)};" for member in range(rng.randrange(1, 4))
                )
                return f"oneof o{index} {{ {members} }}"
            case 1:
                return f"map<{rng.choice(_KEYS)}, {self._type()}> {name} = {next(numbers)};"
            case 2 | 3:
                kind = self._type()
                is_packable = kind in set(_SCALARS) - {"string", "bytes"} or kind == "Kind"
                packed = f" [packed = {rng.choice(('true', 'false'))}]" if is_packable and rng.random() < 0.4 else ""
                return f"repeated {kind} {name} = {next(numbers)}{packed};"
            case 4 if self._is_proto2:
                return f"optional group G{index} = {next(numbers)} {{ optional {self._type()} inner = 1; }}"
        kind = self._type()
        if not self._is_proto2:
            return f"{rng.choice(('', 'optional '))}{kind} {name} = {next(numbers)};"
        default = f" [default = {_DEFAULTS[kind]}]" if kind in _DEFAULTS and rng.random() < 0.5 else ""
        return f"{rng.choice(('optional', 'required'))} {kind} {name} = {next(numbers)}{default};"

    def _type(self) -> str:
        rng = self._rng
        match rng.randrange(8):
            case 0:
                return f"M{rng.randrange(self._messages)}"
            case 1:
                return f"google.protobuf.{rng.choice(_KNOWN)}"
            case 2:
                return rng.choice(("Kind", "Kind", "Empty"))
        return rng.choice(_SCALARS)


class MessageMaker:
    """Makes messages with random fields. If `is_odd`, many times are the first or the last ones, or beside these."""

    def __init__(self, rng: random.Random, *, is_odd: bool = False) -> None:
        self._rng = rng
        self._is_odd = is_odd

    def body(self, message: Any) -> bytes:
        """The bytes of a message; now and then of two that are merged, or with fields of another type."""
        rng = self._rng
        made = self._message(message, 0).SerializePartialToString()
        if rng.random() < 0.2:
            made += self._message(message, 0).SerializePartialToString()
        if rng.random() < 0.1:
            made += rng.choice(
                (
                    b"\xf8\xff\x07\x05",
                    b"\xfb\xff\x07\x08\x01\xfc\xff\x07",
                    b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                )
            )
        return bytes(made)

    def _message(self, message: Any, depth: int) -> Any:
        made = GetMessageClass(message)()
        for field in fields_of(message):
            if self._rng.random() < (0.75 if depth < 2 else 0.3 if depth < 4 else 0):
                self._set(made, field, depth)
        return made

    def _set(self, made: Any, field: Any, depth: int) -> None:
        rng = self._rng
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            for _ in range(rng.choice((0, 1, 3, 80 if rng.random() < 0.05 else 2))):
                if value.message_type is None:
                    getattr(made, field.name)[self._scalar(key)] = self._scalar(value)
                else:
                    getattr(made, field.name)[self._scalar(key)].CopyFrom(self._single(value.message_type, depth))
        elif field.is_repeated:
            many = [self._value(field, depth) for _ in range(rng.choice((0, 1, 3)))]
            content_of(made, field).extend(many)
        elif field.message_type is not None:
            content_of(made, field).CopyFrom(self._single(field.message_type, depth))
        elif field.is_extension:
            made.Extensions[field] = self._scalar(field)
        else:
            setattr(made, field.name, self._scalar(field))

    def _value(self, field: Any, depth: int) -> Any:
        return self._scalar(field) if field.message_type is None else self._single(field.message_type, depth)

    def _single(self, message: Any, depth: int) -> Any:
        rng = self._rng
        if message.full_name in {"google.protobuf.Timestamp", "google.protobuf.Duration"}:
            made = GetMessageClass(message)()
            made.seconds, made.nanos = rng.choice((0, 1, 1_700_000_000)), rng.choice((0, 1, 999_999_999, 123_456_789))
            if rng.random() < 0.05:
                made.seconds = -1
            if self._is_odd:
                made.seconds = rng.choice(_ODD_SECONDS if rng.random() < 0.1 else _LAST_SECONDS[message.name])
                made.nanos = -made.nanos if message.name == "Duration" and made.seconds < 0 else made.nanos
            return made
        if message.full_name == "google.protobuf.Value":
            made = GetMessageClass(message)()
            made.number_value = rng.randrange(10)
            return made
        return self._message(message, depth + 1)

    def _scalar(self, field: Any) -> Any:  # noqa: PLR0911 - one for each kind of type
        rng = self._rng
        if field.enum_type is not None:
            choices = [0, 1, -3, 70000] + ([] if field.enum_type.is_closed else [5, -(1 << 31)])
            return rng.choice(choices)
        name = _TYPE_NAMES[field.type]
        if name in _BITS:
            top = 1 << _BITS[name]
            return rng.choice((0, 1, -1, top - 1, -top, rng.randrange(-top, top)))
        if name in _UNSIGNED:
            return rng.choice((0, 1, (1 << _UNSIGNED[name]) - 1, rng.getrandbits(_UNSIGNED[name])))
        if name == "bool":
            return rng.random() < 0.5
        if name == "string":
            return rng.choice(_TEXTS)
        if name == "bytes":
            return rng.randbytes(rng.randrange(5))
        return rng.choice((0.0, -0.0, 1.5, -1e30, float("inf"), float("nan"), 0.1))
