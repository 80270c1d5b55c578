"""Samples of JSON documents, whole and mutated: columns that are inferred from them only grow, and hold them all."""

import json
import math
import random
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.columns import field_name, grow_until_stable
from kafka_io.values.decoding import DecodedValues
from kafka_io.values.json.decoder import JsonDecoder
from kafka_io.values.json.inference import grow_by_sample
from kafka_io.values.json.reading import JsonReading, reading_of
from tests.fuzz.json_values import with_broken_bytes
from tests.fuzz.sized import joined, parted

_KEYS = ("a", "b", "A", "a_2", "id", "x y", "", "é")
"""Keys: some collide if case does not count, or with the name of a second column."""
_SCALARS = (
    None, True, 0, -1, 2**63 - 1, 2**63, 10**38, -(10**37), 0.5, -1e300, "", "text", "2024-01-01", "€",
)  # fmt: skip
_MOST_SAMPLES, _MOST_DOCUMENTS = 4, 5
_FEW_MEMBERS = 5
_MANY_MEMBERS = 300
_DEEP = 20


class _Object(list[tuple[str, Any]]):
    """An object: its pairs in their order."""


def mutated_samples(rng: random.Random) -> bytes:
    """A few samples, each of a few documents; some documents have bytes changed."""
    return joined(joined(_documents(rng)) for _ in range(rng.randrange(1, _MOST_SAMPLES)))


def _documents(rng: random.Random) -> Iterator[bytes]:
    for _ in range(rng.randrange(1, _MOST_DOCUMENTS)):
        value = _object(rng, 3) if rng.randrange(20) else _value(rng, 2)
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode()
        yield text if rng.randrange(3) else with_broken_bytes(text, rng)


def _object(rng: random.Random, depth: int) -> dict[str, Any]:
    if not rng.randrange(100):
        return {str(number): _value(rng, 0) for number in range(_MANY_MEMBERS)}
    return {rng.choice(_KEYS): _value(rng, depth - 1) for _ in range(rng.randrange(_FEW_MEMBERS))}


def _value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(8) if depth > 0 else 0
    if kind == 7:
        return _object(rng, depth)
    if kind == 6:
        return [_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 5 and not rng.randrange(10):
        return json.loads("[" * _DEEP + "1" + "]" * _DEEP)
    return rng.choice(_SCALARS)


def read_samples(data: bytes, _limits: DecodeLimits) -> None:
    """Only infer columns."""
    columns = pa.schema([])
    for sample in parted(data):
        columns = grow_by_sample(columns, parted(sample))


def check_samples(data: bytes, _rng: random.Random) -> str:
    """Check that no sample changes or removes a column, and that the columns hold what can be read of all samples.

    Returns "read" if all values can be read, else "refused".
    """
    samples = [parted(sample) for sample in parted(data)]
    values = [value for sample in samples for value in sample]
    columns, is_new = pa.schema([]), True
    while is_new:
        columns = grow_until_stable(columns, [partial(_checked_growth, sample=sample) for sample in samples])
        decoded = _decoded(values, columns)
        # A sample with several types of a key says nothing of its members, so single values are samples, too.
        rows = {*decoded.new_keys.tolist(), *(failure.row for failure in decoded.failures)}
        alone = [[values[row]] for row in sorted(rows)]
        samples += alone
        is_new = any(grow_by_sample(columns, sample) != columns for sample in alone)
    refused = {failure.row: failure.reason for failure in decoded.failures}
    for row, (value, cells) in enumerate(zip(values, decoded.rows.to_pylist(), strict=True)):
        document = _document(value)
        assert row in refused or document is not None, value
        if document is not None and _is_clear(document):
            assert row not in refused, f"{value!r} is refused: {refused[row]}"
            assert _has_members(cells, columns, document), f"{value!r} gives {cells}"
    return "refused" if refused else "read"


def _checked_growth(columns: pa.Schema, sample: list[bytes]) -> pa.Schema:
    """The columns after a sample, which keeps all columns that were there before."""
    grown = grow_by_sample(columns, sample)
    _check_grown(columns, grown)
    return grown


def _decoded(values: list[bytes], columns: pa.Schema) -> DecodedValues:
    decoded = JsonDecoder(columns).decode(pa.array(values, pa.binary()))
    decoded.rows.validate(full=True)
    return decoded


def _has_members(cells: dict[str, Any], fields: Any, document: _Object) -> bool:
    """Whether exactly one column of each key has its value, and no other column has any.

    A key without a column has a value without scalars.
    """
    filled = [(field_name(field), field, cells[field.name]) for field in fields if cells[field.name] is not None]
    keys = [key for key, _, _ in filled]
    known = {field_name(field) for field in fields}
    wanted = {key: member for key, member in document if member is not None and (key in known or _has_type(member))}
    return sorted(keys) == sorted(wanted) and all(_has_value(cell, field, wanted[key]) for key, field, cell in filled)


def _has_value(cell: Any, field: pa.Field, value: Any) -> bool:
    """Whether a cell is a value of a document."""
    if value is None:
        return cell is None
    if reading_of(field) is JsonReading.TEXT:
        return bool(_loaded(cell) == value)
    if pa.types.is_struct(field.type):
        return isinstance(value, _Object) and _has_members(cell, field.type, value)
    if pa.types.is_list(field.type):
        items = zip(cell, value, strict=False)
        return len(cell) == len(value) and all(
            _has_value(item, field.type.value_field, member) for item, member in items
        )
    if pa.types.is_float64(field.type):
        return bool(cell == float(value))
    return bool(cell == value and isinstance(cell, bool | str) == isinstance(value, bool | str))


def _check_grown(before: Any, after: Any) -> None:
    """Check that fields are the first ones of others, in the same places, and that only members were added."""
    kept = list(after)[: len(list(before))]
    for old, new in zip(before, kept, strict=True):
        assert (old.name, old.metadata, old.nullable) == (new.name, new.metadata, new.nullable)
        _check_type(old.type, new.type)
    names = [field.name.casefold() for field in after]
    assert len(set(names)) == len(names)


def _check_type(before: pa.DataType, after: pa.DataType) -> None:
    assert before.id == after.id
    if pa.types.is_struct(before):
        _check_grown(before, after)
    elif pa.types.is_list(before):
        _check_type(before.value_type, after.value_type)
    else:
        assert before == after


def _document(value: bytes) -> _Object | None:
    """The object that a value is; None if it is none."""
    with suppress(ValueError, RecursionError):
        json.dumps(json.loads(value), ensure_ascii=False).encode()  # refuses lone surrogates
        document = _loaded(value.decode())
        return document if isinstance(document, _Object) else None
    return None


def _loaded(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_Object, parse_float=_number, parse_constant=_refuse)


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # the exponent has more digits than a decimal can have
        return Decimal("inf")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _is_clear(value: Any) -> bool:
    """Whether no object has a key twice, and numbers are finite."""
    if isinstance(value, Decimal):
        return math.isfinite(float(value))
    if isinstance(value, _Object) and len(dict(value)) < len(value):
        return False
    return not isinstance(value, list) or all(map(_is_clear, _inside(value)))


def _has_type(value: Any) -> bool:
    """Whether a value has a scalar, so that its key needs a column."""
    return any(map(_has_type, _inside(value))) if isinstance(value, list) else value is not None


def _inside(value: list[Any]) -> list[Any]:
    return [member for _, member in value] if isinstance(value, _Object) else value
