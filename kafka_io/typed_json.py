"""Values of a type from JSON or from its parts, for several threads.

msgspec learns a dataclass or a Struct when it is first used. If two threads use a type first at the same time, the
process ends with a segmentation fault (msgspec 0.22, seen when a command read many tables in threads). So the first use
of each type holds a lock. It learns the types inside of this type, too.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
KeyT = TypeVar("KeyT")
JsonObject = Mapping[str, object]
"""A JSON object. What its values are must be checked, or is known where it is used."""

_learned: set[Any] = set()
_learning = threading.RLock()


def convert(value: Any, type_: type[T]) -> T:
    """The value of a type that was made of dicts, lists and plain values.

    Raises:
        msgspec.ValidationError: the value does not fit the type.
    """
    learn(type_)
    return msgspec.convert(value, type_)


def convert_exact(value: JsonObject, type_: type[T]) -> T:
    """The value of a dataclass that was made of dicts, lists and plain values, all of whose fields are known.

    `convert` ignores unknown fields, because other programs may add some.

    Raises:
        ValueError: a field is not known, or the value does not fit the type (msgspec.ValidationError).
    """
    _check_fields([value], type_)
    return convert(value, type_)


def convert_exact_values(values: Mapping[KeyT, JsonObject], type_: type[T]) -> dict[KeyT, T]:
    """The values of a dataclass by key, as `convert_exact` makes each of them.

    Raises:
        ValueError: a field is not known, or a value does not fit the type (msgspec.ValidationError).
    """
    _check_fields(values.values(), type_)
    return {key: convert(value, type_) for key, value in values.items()}


def _check_fields(values: Iterable[JsonObject], type_: type[object]) -> None:
    if unknown := set[str]().union(*values) - {known.name for known in fields(type_)}:  # type: ignore[arg-type]
        raise ValueError(f"unknown fields of {type_.__name__}: {', '.join(sorted(unknown))}")


def decode_json(data: bytes | str, type_: type[T]) -> T:
    """The value of a type that JSON text contains.

    Raises:
        msgspec.DecodeError: the text is no JSON, or does not fit the type.
    """
    learn(type_)
    return msgspec.json.decode(data, type=type_)


def learn(type_: Any) -> None:
    """Let msgspec learn a type, unless it knows the type."""
    if type_ in _learned:
        return
    with _learning:
        msgspec.json.Decoder(type_)
        _learned.add(type_)
