"""The condition `skip` of `[topics.NAME.load]`: records for which it is true get no row.

It is evaluated on the decoded values, before fields are dropped, masked or hashed. It is unknown, and not true, where
it compares a column that no value has had yet. A tombstone has no value, so what is said about columns of values is
unknown for it, also `is null`.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.layout.columns import ERROR_COLUMN, HEADER_PREFIX, KEY_PREFIX, RAW_COLUMN, TOMBSTONE_COLUMN
from pipelines.layout.conditions import (
    Condition,
    ConditionPart,
    Evaluate,
    IsNull,
    Junction,
    Literal,
    Membership,
    Negation,
    Operand,
    ValueComparison,
    parse_condition,
)
from pipelines.layout.layout import TableLayout
from pipelines.layout.rows import FILE_SCHEMA
from resources.errors import ConditionInvalid

RecordMask = npt.NDArray[np.bool_]
_OF_TYPED = ("key", "timestamp", "headers")
_OF_RAW = ("key", "headers")
_OWN_PREFIX = "_kafka_"


@dataclass(frozen=True, slots=True)
class _Always:
    """A part that has the same result for all rows; None if it is unknown."""

    result: bool | None

    def operands(self) -> Iterator[Operand]:
        yield from ()

    def literals(self) -> Iterator[Literal]:
        yield from ()

    def bound(self, schema: pa.Schema, headers: str) -> Evaluate:  # noqa: ARG002 - every part has these arguments
        return lambda rows: pa.repeat(pa.scalar(self.result, pa.bool_()), rows.num_rows)


def condition_of(skip: str) -> Condition:
    """The condition of the setting.

    Raises:
        ConditionInvalid: it is no condition; the error names the setting.
    """
    with _naming_the_setting():
        return parse_condition(skip)


def paths_of(skip: str) -> Sequence[str]:
    """The paths of the fields of values and keys that the condition compares."""
    operands = condition_of(skip).root.operands() if skip else ()
    return [".".join(operand.path) for operand in operands if operand.header is None]


def digest_of(skip: str) -> str:
    """A short digest of the condition, for the ledger; empty without a condition. It shows no value."""
    return hashlib.sha256(skip.encode()).hexdigest()[:16] if skip else ""


@contextmanager
def _naming_the_setting() -> Iterator[None]:
    try:
        yield
    except ConditionInvalid as error:
        raise ConditionInvalid(f"`skip` of [topics.NAME.load]: {error.reason}") from error


class SkipCondition:
    """The condition for the records of one plan.

    Attributes:
        missing: the columns of the condition that no value has had yet.

    Args:
        skip: the condition.
        layout: the layout of the table.
        columns: the columns for fields of values, of keys, and of headers, as they are decoded; empty for a raw table.
        has_keys: whether keys are decoded.

    Raises:
        ConditionInvalid: the condition does not fit the columns.
    """

    def __init__(self, skip: str, layout: TableLayout, columns: pa.Schema, *, has_keys: bool = False) -> None:
        own = _OF_TYPED if layout.is_typed else _OF_RAW
        self._own = {layout.name(name): name for name in own}
        fields = [FILE_SCHEMA.field(name).with_name(typed_name) for typed_name, name in self._own.items()]
        if layout.is_typed:
            fields.append(pa.field(TOMBSTONE_COLUMN, pa.bool_()))
        known = pa.schema([*fields, *columns])
        with _naming_the_setting():
            condition = parse_condition(skip)
            operands = list(condition.root.operands())
            for operand in operands:
                _check_place(operand, known, layout, has_keys=has_keys)
            missing = (".".join(operand.path) for operand in operands if _is_missing(operand, known))
            self.missing = tuple(dict.fromkeys(missing))
            headers = layout.name("headers")
            bound = Condition(_mapped(condition.root, partial(_of_missing, known))).bound(known, headers)
            self._schema = pa.schema([known.field(name) for name in bound.columns])
            self._of_values = bound.evaluate
            of_tombstones = _mapped(condition.root, partial(_of_tombstone, known, {field.name for field in fields}))
            self._of_tombstones = of_tombstones.bound(known, headers)

    def is_true(self, kafka: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> RecordMask:
        """For which records the condition is true.

        `kafka` are the records as rows of a raw table, `columns` what their values, keys and headers decode to.
        """
        is_tombstone = kafka.column("value").is_null()
        own = {name: kafka.column(column) for name, column in self._own.items()}
        known = {**columns, **own, TOMBSTONE_COLUMN: is_tombstone}
        arrays = [known[field.name].cast(field.type) for field in self._schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema) if arrays else kafka
        result = self._of_values(rows)
        if is_tombstone.true_count:
            result = pc.if_else(is_tombstone, self._of_tombstones(rows), result)
        mask: RecordMask = pc.fill_null(result, fill_value=False).to_numpy(zero_copy_only=False)
        return mask


_Leaf = ValueComparison | Membership | IsNull


def _mapped(part: ConditionPart, of_leaf: Callable[[_Leaf], ConditionPart]) -> ConditionPart:
    if isinstance(part, Junction):
        return replace(part, parts=[_mapped(inner, of_leaf) for inner in part.parts])
    if isinstance(part, Negation):
        return replace(part, inner=_mapped(part.inner, of_leaf))
    return of_leaf(part) if isinstance(part, ValueComparison | Membership | IsNull) else part


def _of_missing(schema: pa.Schema, part: _Leaf) -> ConditionPart:
    """The part, or what it is for all records if there is no such column yet."""
    if not _is_missing(part.operand, schema):
        return part
    return _Always(True if isinstance(part, IsNull) else None)


def _of_tombstone(schema: pa.Schema, own: Collection[str], part: _Leaf) -> ConditionPart:
    """The part for records without values; `own` are the columns that each record has."""
    operand = part.operand
    is_of_value = operand.header is None and not operand.path[0].startswith(_OWN_PREFIX) and operand.path[0] not in own
    return _Always(None) if is_of_value else _of_missing(schema, part)


def _is_missing(operand: Operand, schema: pa.Schema) -> bool:
    """Whether there is no such column, or no such field inside it, yet."""
    kind: pa.DataType = pa.struct(list(schema))
    for name in operand.path:
        if not pa.types.is_struct(kind):
            operand.type_in(schema)  # it has an error for a field inside of a value without fields
        if kind.get_field_index(name) < 0:
            return True
        kind = kind.field(name).type
    return False


def _check_place(operand: Operand, schema: pa.Schema, layout: TableLayout, *, has_keys: bool) -> None:
    """Check that a record has what the condition compares before it has a row.

    Raises:
        ConditionInvalid: it does not.
    """
    if operand.header is not None or operand.path[0] in schema.names:
        return
    name, place = operand.path[0], f"the condition is wrong at character {operand.position}"
    if not layout.is_typed:
        raise ConditionInvalid(
            f"{place}: a raw table has no columns for fields; compare `key` or header('NAME'), not {name}"
        )
    is_own = name.startswith(_OWN_PREFIX) or name in {ERROR_COLUMN, RAW_COLUMN}
    if is_own and not (has_keys and name.startswith(KEY_PREFIX)):
        others = ", ".join((*(layout.name(own) for own in _OF_TYPED if own != "headers"), TOMBSTONE_COLUMN))
        raise ConditionInvalid(
            f"{place}: no record has {name} before it is a row; compare fields, {others}, {HEADER_PREFIX}NAME of "
            "`header_columns`, or header('NAME')"
        )
