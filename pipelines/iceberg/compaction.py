"""Merges small files of an Iceberg table: which files become one, and the snapshot that puts it in their place."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date

from pipelines.iceberg.data_files import manifest_file
from pipelines.iceberg.open_version import IcebergVersion
from pipelines.iceberg.replacement import merged_files
from pipelines.iceberg.snapshot_commit import SnapshotChange
from pipelines.iceberg.snapshots import HOUSEKEEPING


def small_files(opened: IcebergVersion, days: Collection[date | None] | None, target_bytes: int) -> list[str]:
    """The paths of small files of one day that fit into one file of the target size; none if no two do.

    The smallest come first, and as many as fit, so that a merged file is not merged with the next ones. In a table with
    delete files of other engines nothing is merged: these name the rows by their files, and the rows would come back.
    """
    if opened.has_deletes:
        return []
    files, column = opened.files(), f"partition.{opened.layout.partition_column}"
    by_day: dict[date | None, list[tuple[int, str]]] = defaultdict(list)
    for path, size, day in zip(*(files[name].to_pylist() for name in ("path", "size_bytes", column)), strict=True):
        if days is None or day in days:
            by_day[day].append((size, path))
    for of_day in by_day.values():
        paths, left = list[str](), target_bytes
        for size, path in sorted(of_day):
            left -= size
            if left < 0:
                break
            paths.append(path)
        if len(paths) > 1:
            return paths
    return []


def merge_of(opened: IcebergVersion, paths: Sequence[str]) -> SnapshotChange:
    """Write these files as one; returns the change that puts it in their place."""
    location, table = opened.table.location(), opened.table
    merged = merged_files(opened, paths)
    return SnapshotChange(
        added=[manifest_file(location, file, table.schema(), table.spec(), opened.layout) for file in merged],
        removed={f"{location}/{path}" for path in paths},
        keeps_rows=True,
        summary={HOUSEKEEPING: "merge of small files"},
    )
