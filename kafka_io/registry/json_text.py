"""JSON of a registry node, read strictly: no name stands twice, and each field that is asked for has its type.

Fields that nobody asks for are let by: each version of Kafka adds some.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka_io.errors import NodeMalformed
from kafka_io.registry.text import malformed, shown, text_of

T = TypeVar("T")

_KINDS = {int: "a whole number", str: "text", list: "a list", dict: "an object"}


def looks_like_json(data: bytes) -> bool:
    """Whether the value means to be a JSON object, well formed or not."""
    return data.lstrip().startswith(b"{")


@dataclass(frozen=True, slots=True)
class JsonObject:
    """A JSON object in the node at `path`. Each method raises NodeMalformed for a field that is not as it must be."""

    path: str
    fields: Mapping[str, Any]

    @classmethod
    def parse(cls, path: str, data: bytes, *, max_bytes: int) -> "JsonObject":
        """The object that is the node's whole value, of at max_value `max_bytes` bytes."""
        text = text_of(path, data, max_bytes=max_bytes)
        try:
            value = json.loads(text, object_pairs_hook=_each_name_once, parse_constant=_refuse)
        except RecursionError as error:
            raise malformed(path, "its JSON is nested too deep") from error
        except ValueError as error:  # a number of thousands of digits is one too
            raise malformed(path, f"its value is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise malformed(path, f"its JSON is {shown(value)}, not an object")
        return cls(path, value)

    def integer(self, name: str, *, min_value: int = 0, max_value: int = 2**31 - 1) -> int:
        """A whole number from `min_value` to `max_value`."""
        value = self._typed(name, int)
        if not min_value <= value <= max_value:
            raise self._fault(name, f"not from {min_value} to {max_value}")
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        values = self._typed(name, list)
        if any(type(value) is not int for value in values):
            raise self._fault(name, "not of whole numbers")
        return tuple(values)

    def text(self, name: str) -> str:
        """Text that can be printed, and is not empty."""
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

    def object(self, name: str) -> "JsonObject":
        """An object inside this one."""
        return JsonObject(self.path, self._typed(name, dict))

    def has(self, name: str) -> bool:
        """Whether the field is there, and not null."""
        return self.fields.get(name) is not None

    def _typed(self, name: str, kind: type[T]) -> T:
        value = self.fields.get(name)
        if type(value) is kind:  # true and false are instances of int
            return value
        raise self._fault(name, f"not {_KINDS[kind]}") if self.has(name) else malformed(self.path, f"no {name!r} in it")

    def _fault(self, name: str, reason: str) -> NodeMalformed:
        return malformed(self.path, f"its {shown(name)} is {shown(self.fields[name])}, {reason}")


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
