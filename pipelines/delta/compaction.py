"""Merges small files of a Delta table into large ones, with the compaction of deltalake."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from pipelines.delta.write_options import AFTER_COMMIT, CONFIGURATION, WRITING
from pipelines.delta.writes import grow_maps
from pipelines.layout.layout import TableLayout
from pipelines.table.lake_table import Compaction
from resources.failpoints import failpoint

_COMPACTION = "penstock.compaction"


def compact(
    handle: DeltaTable,
    options: Mapping[str, str],
    days: Sequence[date | None] | None,
    target_bytes: int,
    check_overtaken: Callable[[int, Exception], None],
) -> Compaction:
    """Merge the small files of these days, or of all folders; see `LakeTable.compact`.

    `check_overtaken` raises an error if no other writer was first when a commit on top of a version failed.

    Raises:
        LakeRefused: see `check_overtaken`.
    """
    result = Compaction()
    for filters in _partition_filters(TableLayout.of_delta(handle.schema().to_json()), days):
        try:
            metrics = _compacted(handle, options, filters, target_bytes)
        except CommitFailedError as error:
            check_overtaken(handle.version(), error)
            return result.interrupted()
        failpoint("after compaction")
        result = result.plus(metrics["numFilesRemoved"], metrics["numFilesAdded"])
    return result


def _compacted(handle: DeltaTable, options: Mapping[str, str], filters: Any, target_bytes: int) -> Mapping[str, Any]:
    """Merge small files; returns the metrics of deltalake. If another writer replaces files meanwhile, it is refused.

    deltalake has a race: it lets a compaction land on top of another one that has merged the same files, and then every
    row is in the table twice. But nothing lands on top of a change of the table's properties that it has not seen. So
    each compaction first writes a new value of the property _COMPACTION, and is built on that version. If two run at
    once, the one that wrote its property first is refused, whenever it finishes. The same version sets the properties
    of every table, because deltalake's compaction cleans up the log whatever AFTER_COMMIT says.
    """
    handle.alter.set_table_properties(
        {**CONFIGURATION, _COMPACTION: uuid.uuid4().hex},
        raise_if_not_exists=False,
        post_commithook_properties=AFTER_COMMIT,
    )
    failpoint("compaction announced")
    grow_maps(handle, options, max_bytes=target_bytes)
    return handle.optimize.compact(
        partition_filters=filters,
        target_size=target_bytes,
        writer_properties=WRITING,
        post_commithook_properties=AFTER_COMMIT,
    )


def _partition_filters(layout: TableLayout, days: Sequence[date | None] | None) -> Iterator[Any]:
    """The filters of each compaction that these days need; None stands for all folders.

    In deltalake an empty text is null, but only as the single value of a filter.
    """
    if days is None:
        yield None
        return
    if named := [str(day) for day in days if day is not None]:
        yield [(layout.partition_column, "in", named)]
    if None in days:
        yield [(layout.partition_column, "=", "")]
