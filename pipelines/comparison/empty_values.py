"""Values that a table has as null because they were loaded before their key had a column.

The columns of JSON objects are inferred: a key that only had {} and [] gets its column with its first other value. Rows
that were loaded before that are null, and are decoded again as an object or array without a value (fault E28).
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from kafka_io.values.column_types import content_field
from kafka_io.values.json.reading import JsonReading, reading_of


def differs_in_values(
    of_table: pa.Array, of_broker: pa.Array, differ: npt.NDArray[np.bool_], field: pa.Field
) -> npt.NDArray[np.bool_]:
    """The mask of rows whose cells differ, without those where the table has null for an empty value."""
    result = differ.copy()
    for row in np.flatnonzero(differ).tolist():
        result[row] = not _is_same(of_table[row].as_py(), of_broker[row].as_py(), field)
    return result


def _is_same(of_table: Any, of_broker: Any, field: pa.Field) -> bool:
    if of_table is None or of_broker is None:
        return of_table is None and not _has_value(of_broker, field)
    if types.is_struct(field.type):
        return all(_is_same(of_table[member.name], of_broker[member.name], member) for member in field.type)
    if types.is_list(field.type):
        items = zip(of_table, of_broker, strict=False)
        return len(of_table) == len(of_broker) and all(_is_same(*pair, content_field(field.type)) for pair in items)
    return bool(of_table == of_broker)


def _has_value(cell: Any, field: pa.Field) -> bool:
    """Whether a cell has more than nulls, {} and []."""
    if reading_of(field) is JsonReading.TEXT and cell is not None:
        return _has_scalar(json.loads(cell))
    if types.is_struct(field.type) and cell is not None:
        return any(_has_value(cell[member.name], member) for member in field.type)
    if types.is_list(field.type) and cell is not None:
        return any(_has_value(item, content_field(field.type)) for item in cell)
    return cell is not None


def _has_scalar(document: Any) -> bool:
    if isinstance(document, Mapping):
        return any(map(_has_scalar, document.values()))
    return any(map(_has_scalar, document)) if isinstance(document, list) else document is not None
