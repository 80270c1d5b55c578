"""What a data file's footer tells of its columns, as Delta's log wants it.

Each column that has an order needs its bounds there: readers through pyarrow take a column without them for one that
no filter can match, and leave the whole file out.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq

_ORDERED = ("topic", "broker", "partition", "offset", "timestamp", "timestampType", "inner", "loaded_at")


def file_stats(footer: pq.FileMetaData) -> Mapping[str, Any]:
    """`numRecords`, and `minValues`, `maxValues` and `nullCount` by column; times are ISO 8601 texts in UTC."""
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, one in _columns(footer):
        nulls[name] = nulls.get(name, 0) + one.null_count
        if one.has_min_max:
            lowest[name] = min(one.min, lowest.get(name, one.min))
            highest[name] = max(one.max, highest.get(name, one.max))
    return {
        "numRecords": footer.num_rows,
        "minValues": {name: _text(value) for name, value in lowest.items()},
        "maxValues": {name: _text(value) for name, value in highest.items()},
        "nullCount": nulls,
    }


def _columns(footer: pq.FileMetaData) -> Iterator[tuple[str, Any]]:
    numbers = {footer.row_group(0).column(at).path_in_schema: at for at in range(footer.num_columns)}
    for group in range(footer.num_row_groups):
        for name in _ORDERED:
            yield name, footer.row_group(group).column(numbers[name]).statistics


def _text(value: Any) -> Any:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else value
