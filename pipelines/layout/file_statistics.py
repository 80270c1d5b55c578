"""The statistics of a file's columns from its footer, in the form that Delta's log needs.

Every column that has an order needs its bounds in the log. Readers that use pyarrow conclude from a column without
bounds that no filter can match it, and leave the whole file out. So a column with personal values has constant bounds:
the widest ones of its type that every reader can parse. They say nothing about a value (fault Y01).
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.layout.layout import RAW, TableLayout, types_with_order

_MAX_TEXT = 64  # characters of a bound in the log; a longer text is cut, so that the log stays small
_AFTER_ANY_TEXT = "\U0010ffff"
_INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
"""JSON has no infinity. These are the texts that Delta's own writer puts into the log."""
# The years 1 to 9999 as days and as microseconds since 1970: readers cannot parse others.
_DAYS = (-719_162, 2_932_896)
_MICROSECONDS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_WIDEST: Sequence[tuple[Callable[[pa.DataType], bool], tuple[Any, Any]]] = (
    (pa.types.is_boolean, (False, True)),
    (pa.types.is_date, _DAYS),
    (pa.types.is_timestamp, _MICROSECONDS),
    (pa.types.is_floating, (-math.inf, math.inf)),
)
NO_NULLS: Mapping[str, int] = {}


def file_stats(
    footer: pq.FileMetaData, layout: TableLayout = RAW, nulls: Mapping[str, int] = NO_NULLS
) -> Mapping[str, Any]:
    """`numRecords`, and `minValues`, `maxValues` and `nullCount` by column; times are ISO 8601 texts in UTC.

    `nulls` has the number of nulls of each personal column with an order. The footer says nothing about them.
    """
    return column_stats(footer, types_with_order(layout.file_schema), nulls)


def column_stats(
    footer: pq.FileMetaData, types: Mapping[str, pa.DataType], personal_nulls: Mapping[str, int] = NO_NULLS
) -> Mapping[str, Any]:
    """The same for these columns, which must have an order."""
    constant = {name: _widest_bounds(types[name]) for name in personal_nulls}
    lowest: dict[str, Any] = {name: bounds[0] for name, bounds in constant.items()}
    highest: dict[str, Any] = {name: bounds[1] for name, bounds in constant.items()}
    nulls = dict(personal_nulls)
    for name, column in _column_statistics(footer, [name for name in types if name not in personal_nulls]):
        nulls[name] = nulls.get(name, 0) + column.null_count
        lowest_here, highest_here = _bounds(types[name], column)
        if lowest_here is not None:
            lowest[name] = min(lowest_here, lowest.get(name, lowest_here))
            highest[name] = max(highest_here, highest.get(name, highest_here))
    printers = {name: _printer(kind) for name, kind in types.items()}
    return {
        "numRecords": footer.num_rows,
        "minValues": {name: printers[name](value) for name, value in lowest.items()},
        "maxValues": {name: _upper(value) or printers[name](value) for name, value in highest.items()},
        "nullCount": nulls,
    }


def with_decimals(stats: Mapping[str, Any], decimals: Collection[str]) -> Mapping[str, Any]:
    """The statistics with the bounds of these columns as JSON numbers of all their digits, and not as texts."""
    if not decimals or not stats:
        return stats
    bounds = {
        edge: {name: msgspec.Raw(value.encode()) if name in decimals else value for name, value in stats[edge].items()}
        for edge in ("minValues", "maxValues")
    }
    return {**stats, **bounds}


def _column_statistics(footer: pq.FileMetaData, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Name and statistics of each of these columns, row group by row group."""
    numbers = dict(outermost_columns(footer))
    for group in range(footer.num_row_groups):
        for name in names:
            yield name, footer.row_group(group).column(numbers[name]).statistics


def outermost_columns(footer: pq.FileMetaData) -> Iterator[tuple[str, int]]:
    """The names of the columns that have no fields inside them, with their numbers in a row group.

    The path of a column `a.b` in the file is the same text as that of a field `b` in a column `a` (fault A08). But only
    outermost columns have a path that is their name.
    """
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        if column.name == column.path:
            yield column.name, number


def _bounds(type_: pa.DataType, column: pq.Statistics) -> tuple[Any, Any]:
    """The smallest and the largest value; None if all are null. Dates and times are integers, which have wider limits.

    Texts are decoded: `min_raw` has their bytes. Parquet has no bounds of a column whose values are all NaN, and none
    of a column with a text of more than 4 KiB as a bound.
    """
    if not column.has_min_max:
        return _widest_bounds(type_) if column.num_values else (None, None)
    return (column.min_raw, column.max_raw) if pa.types.is_temporal(type_) else (column.min, column.max)


def _widest_bounds(type_: pa.DataType) -> tuple[Any, Any]:
    """The widest bounds that every reader can parse, in the form of `_bounds`. They say nothing about the values."""
    if pa.types.is_decimal(type_):
        lowest, highest = (Decimal((sign, (9,) * type_.precision, -type_.scale)) for sign in (1, 0))
        return lowest, highest
    if pa.types.is_integer(type_):
        return -(1 << type_.bit_width - 1), (1 << type_.bit_width - 1) - 1
    return next((bounds for is_kind, bounds in _WIDEST if is_kind(type_)), ("", _AFTER_ANY_TEXT * _MAX_TEXT))


def constant_bounds(type_: pa.DataType) -> tuple[Any, Any]:
    """The bounds of a column with personal values, as Delta's log has them."""
    printer = _printer(type_)
    lowest, highest = (printer(bound) for bound in _widest_bounds(type_))
    return lowest, highest


def _printer(type_: pa.DataType) -> Callable[[Any], Any]:
    """The function that gives a bound as Delta's log has it."""
    if pa.types.is_timestamp(type_):
        zone = "Z" if type_.tz else ""
        return lambda value: f"{np.datetime64(_within(value, _MICROSECONDS), 'us')}{zone}"
    if pa.types.is_date(type_):
        return lambda value: str(np.datetime64(_within(value, _DAYS), "D"))
    if pa.types.is_floating(type_):
        return lambda value: _INFINITE.get(value, value)
    if pa.types.is_decimal(type_):  # deltalake reads no exponents, and str gives 0E-7
        return lambda value: format(value, "f")
    return _first_characters


def _within(value: int, limits: tuple[int, int]) -> int:
    return min(max(value, limits[0]), limits[1])


def _first_characters(value: Any) -> Any:
    return value[: _MAX_TEXT + 1] if isinstance(value, str) else value


def _upper(value: Any) -> str:
    """An upper bound of a long text, which is cut: no text is larger that begins with it. Empty for other values."""
    if not isinstance(value, str) or len(value) <= _MAX_TEXT:
        return ""
    end = _MAX_TEXT + 1
    while value.startswith(_AFTER_ANY_TEXT, end):  # the text would be larger than its bound
        end += 1
    return value[:end] + _AFTER_ANY_TEXT
