"""The scalars in a value, in forms in which equal ones are equal, whatever column or text holds them."""

import json
import math
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

Forms = frozenset[Any]
"""The forms in which one scalar may be kept."""


def lost(expected: Any, row: Mapping[str, Any]) -> list[Forms]:
    """The scalars of a value that are not in a row."""
    kept = {form for forms in _leaves(row, inside_texts=True) for form in forms}
    return [forms for forms in _leaves(expected) if not forms & kept]


def _leaves(value: Any, *, inside_texts: bool = False) -> Iterator[Forms]:
    """The scalars in a value, and also those in its JSON texts if `inside_texts`."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            if inside_texts:  # a map can be an object in a JSON text
                yield _key(name)
            yield from _leaves(member, inside_texts=inside_texts)
    elif isinstance(value, tuple):  # an entry of a map
        yield _key(value[0])
        yield from _leaves(value[1], inside_texts=inside_texts)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, inside_texts=inside_texts)
    elif value is not None:
        yield frozenset(_forms(value))
        if inside_texts and isinstance(value, str):
            with suppress(ValueError, RecursionError):
                inner = json.loads(value)
                yield from _leaves(inner, inside_texts=inner != value) if inner != value else ()


def _key(key: Any) -> Forms:
    """The key of a map: in JSON it is a text."""
    text = str(key).lower() if isinstance(key, bool) else str(key)
    return frozenset({("key", text)})


def _forms(value: Any) -> Iterable[Any]:
    if isinstance(value, bool):
        return [("bool", value)]
    if isinstance(value, str):
        as_bytes = [value.encode()]
        with suppress(ValueError):
            as_bytes.append(uuid.UUID(value).bytes)
        return [value, *as_bytes]
    if isinstance(value, bytes):
        texts = [value.decode("latin-1")]  # in the JSON of Avro
        with suppress(UnicodeDecodeError):
            texts.append(value.decode())
        return [value, *texts]
    if isinstance(value, datetime):  # a column has no times without a zone
        return [(value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()]
    return [value.isoformat()] if isinstance(value, date) else _numbers(value)


def _numbers(value: float | Decimal) -> Iterable[Any]:
    if not math.isfinite(value):
        return [str(value).lower()]
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    # A column of doubles also holds integers.
    return [exact, Decimal(repr(float(value)))] if isinstance(value, int) else [exact]
