"""Parses and checks names and values of nodes of every generation. Each error names the node.

JSON is read strictly: an object has each name only once, and each field that is requested has its type. Other fields
are ignored, because each version of Kafka adds some.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any, TypeVar

from kafka_io.errors import NodeMalformed

T = TypeVar("T")

MAX_ID = 2**31 - 1

_MAX_PORT = 2**16 - 1
_SHOWN = 60

_HOST = re.compile(r"[\w.:%-]+")
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,18}")
_JSON_TYPES = {int: "a whole number", str: "text", list: "a list", dict: "an object"}


def text_of(path: str, data: bytes, *, max_bytes: int) -> str:
    """The value of the node at `path` as text, of at most `max_bytes` bytes.

    Raises:
        NodeMalformed: the value is longer, or is not UTF-8. All functions of this module raise it for what they check.
    """
    if len(data) > max_bytes:
        raise malformed(path, f"its value has {len(data)} bytes, more than {max_bytes}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise malformed(path, f"its value {data[:_SHOWN]!r} is not UTF-8") from error


def number(path: str, text: str, *, min_value: int, max_value: int) -> int:
    """A plain decimal number, without signs or leading zeros."""
    if not _DECIMAL.fullmatch(text) or not min_value <= int(text) <= max_value:
        raise malformed(path, f"{text[:_SHOWN]!r} is not a number from {min_value} to {max_value}")
    return int(text)


def broker_id(path: str) -> int:
    """The broker id, which is the last name of the path."""
    return number(path, path.rpartition("/")[2], min_value=0, max_value=MAX_ID)


def port(path: str, text: str) -> int:
    """A port number from 1 to 65535."""
    return number(path, text, min_value=1, max_value=_MAX_PORT)


def host(path: str, text: str) -> str:
    """A host name or address. An IPv6 address may have brackets, which are removed."""
    name = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not _HOST.fullmatch(name):
        raise malformed(path, f"{shown(text)} is not a host")
    if ":" in name:
        try:
            IPv6Address(name)
        except ValueError as error:
            raise malformed(path, f"{shown(text)} is not a host") from error
    return name


def shown(value: object) -> str:
    """A value for an error message: one short line, without the content of lists and objects."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return repr(value[:_SHOWN] if isinstance(value, str) else value)[: 2 * _SHOWN]


def malformed(path: str, fault: str) -> NodeMalformed:
    """The error for a node that cannot be parsed."""
    return NodeMalformed(f"the ZooKeeper node {path!r} is malformed: {fault}")


def check_name(kind: str, name: str) -> None:
    """Check that a node can have this name; `kind` says what it is the name of.

    Raises:
        NodeMalformed: the name is illegal.
    """
    if not name.isprintable() or name in {"", ".", ".."} or "/" in name:
        raise NodeMalformed(f"{shown(name)} is not a legal {kind} name")


def looks_like_json(data: bytes) -> bool:
    """Whether the value starts like a JSON object, valid or not."""
    return data.lstrip().startswith(b"{")


@dataclass(frozen=True, slots=True)
class NodeObject:
    """A JSON object in the node at `path`. Each method raises NodeMalformed if the field is missing or invalid."""

    path: str
    fields: Mapping[str, Any]

    @classmethod
    def parse(cls, path: str, data: bytes, *, max_bytes: int) -> "NodeObject":
        """The object that is the whole value of the node, of at most `max_bytes` bytes."""
        text = text_of(path, data, max_bytes=max_bytes)
        try:
            value = json.loads(text, object_pairs_hook=_unique_names, parse_constant=_refuse)
        except RecursionError as error:
            raise malformed(path, "its JSON is nested too deep") from error
        except ValueError as error:  # also for a number of thousands of digits
            raise malformed(path, "its value is not JSON, or a name or number in it is not valid") from error
        if not isinstance(value, dict):
            raise malformed(path, f"its JSON is {shown(value)}, not an object")
        return cls(path, value)

    def integer(self, name: str, *, min_value: int = 0, max_value: int = 2**31 - 1) -> int:
        """A whole number from `min_value` to `max_value`."""
        value = self._typed(name, int)
        if not min_value <= value <= max_value:
            raise self._fault(name, f"not from {min_value} to {max_value}")
        return value

    def text(self, name: str) -> str:
        """Printable text that is not empty."""
        value = self._typed(name, str)
        if not value or not value.isprintable():
            raise self._fault(name, "not printable text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        values = self._typed(name, list)
        if any(type(value) is not str for value in values):
            raise self._fault(name, "not of texts")
        return tuple(values)

    def object(self, name: str) -> "NodeObject":
        """An object inside this one."""
        return NodeObject(self.path, self._typed(name, dict))

    def has(self, name: str) -> bool:
        """Whether the field exists and is not null."""
        return self.fields.get(name) is not None

    def _typed(self, name: str, kind: type[T]) -> T:
        value = self.fields.get(name)
        if type(value) is kind:  # true and false are instances of int
            return value
        if not self.has(name):
            raise malformed(self.path, f"it has no {name!r}")
        raise self._fault(name, f"not {_JSON_TYPES[kind]}")

    def _fault(self, name: str, reason: str) -> NodeMalformed:
        return malformed(self.path, f"its {shown(name)} is {shown(self.fields[name])}, {reason}")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("an object has the same name twice")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def compact_json(value: Mapping[str, Any]) -> bytes:
    """JSON without blanks, as brokers and consumers write it."""
    return json.dumps(value, separators=(",", ":")).encode()
