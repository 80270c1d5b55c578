"""Sample rows of a load for Dagster's pages: the first rows of the newest range, as short texts and numbers.

They are shown only for topics whose settings ask for them, because Dagster stores them with each load's event.
"""

from typing import Any

import dagster as dg

from pipelines.loading.row_filters import arrow_filter
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import TableSnapshot
from resources.lake import lake_errors

_MAX_TEXT = 100  # characters of a cell
_BATCH_ROWS = 1024


def sample_rows(table: LakeTable, snapshot: TableSnapshot, count: int) -> dg.TableMetadataValue | None:
    """At most `count` rows of the last commit; None if it added no rows.

    Raises:
        LakeUnavailable: the file cannot be read.
    """
    ranges = snapshot.entry.ranges if snapshot.entry else ()
    newest = next((committed for committed in reversed(ranges) if committed.rows), None)
    if newest is None or not count:
        return None
    with lake_errors(table.uri):
        rows = snapshot.handle.to_pyarrow_dataset().head(
            count,
            filter=arrow_filter(newest, snapshot.layout),
            batch_size=_BATCH_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
        )
    columns = [dg.TableColumn(field.name, str(field.type)) for field in rows.schema]
    records = [dg.TableRecord({name: _cell(value) for name, value in row.items()}) for row in rows.to_pylist()]
    return dg.MetadataValue.table(records, dg.TableSchema(columns))


def _cell(value: Any) -> str | int | float | bool | None:
    """A value as Dagster's tables take it. Bytes are shown as text, with a replacement for each invalid one."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value[: 4 * _MAX_TEXT].decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
