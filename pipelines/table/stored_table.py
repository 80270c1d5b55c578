"""The part of a table that is the same in each format: it checks, counts and reads files, and keeps sets of offsets."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import pyarrow.compute as pc
import pyarrow.fs as pafs

from kafka_io.errors import Where
from kafka_io.records.last_message import LastMessage
from pipelines.layout.layout import RAW, TableLayout
from pipelines.layout.rows import decoded_rows
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.exact_sets import ExactSets, store_exact
from pipelines.table.lake_table import DAMAGED
from pipelines.table.open_table import OpenTable
from pipelines.table.row_filter import arrow_filter
from pipelines.table.table_store import TableSnapshot
from pipelines.table.written_files import check_files
from resources.errors import CursorMismatch, LakeRefused, RewindRefused, TableReplaced
from resources.stores import durable
from resources.stores.lake import Lake, filesystem, lake_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """The table of a topic at `uri` in a lake. The formats know how its versions are found.

    Args:
        lake: the lake.
        uri: the folder of the table, with its data files.
        where: the cluster and the topic, for messages.
        new_layout: the layout of the table, if it is created.
        checks_cursors: whether `existing` refuses a table whose cursors do not match its rows.
    """

    lake: Lake
    uri: str
    where: Where
    new_layout: TableLayout = RAW
    checks_cursors: bool = True

    def even_if_mismatched(self) -> Self:
        """The same table, which also opens if its cursors do not match its rows."""
        return replace(self, checks_cursors=False)

    def check_cursors(self, snapshot: TableSnapshot) -> None:
        """Check that a load could continue from the snapshot.

        Raises:
            CursorMismatch: the rows do not agree with the cursors.
        """
        if snapshot.mismatch:
            raise CursorMismatch(snapshot.mismatch, self.where)

    def check_same_table(self, snapshot: TableSnapshot, newest: TableSnapshot | None) -> TableSnapshot:
        """The newest version, which must be one of the table of the snapshot.

        Raises:
            TableReplaced: it is not.
        """
        if newest is None or newest.table_id != snapshot.table_id:
            raise TableReplaced(
                f"the table {self.uri} was removed while this run used it"
                f"{', and another table is there now' if newest else ''}; run again to load the topic into a new table",
                self.where,
            )
        return newest

    def check_no_other_format(self, folder: str, name: str) -> None:
        """Check, before the table is created, that its place has no table of another format, which has this folder.

        Raises:
            LakeRefused: it has one.
        """
        with lake_errors(self.uri):
            other = filesystem(self.uri, self.lake.options).get_file_info(folder)
        if other.type == pafs.FileType.Directory:
            raise LakeRefused(
                f'the topic has a table of the format {name} at {self.uri}: keep `table_format = "{name}"` for it in '
                "the settings, or move this table away",
                self.where,
            )

    def set_aside(self, damaged: Collection[str]) -> None:
        """Move what is left of damaged files into the folder DAMAGED, where no reader finds it."""
        files = filesystem(self.uri, self.lake.options)
        for info in files.get_file_info(sorted(damaged)):
            if info.type == pafs.FileType.File:
                files.create_dir(DAMAGED, recursive=True)
                files.move(info.path, f"{DAMAGED}/{info.base_name}")

    def check_files_exist(self, paths: Sequence[str], target: int) -> None:
        """Check that a rewind to version `target` can bring back these data files.

        Raises:
            RewindRefused: one of them is gone.
        """
        with lake_errors(self.uri):
            infos = filesystem(self.uri, self.lake.options).get_file_info(list(paths))
        lost = [info.path for info in infos if info.type != pafs.FileType.File]
        if lost:
            raise self.not_restorable(lost, target, "was deleted, for example by a vacuum")

    def not_restorable(self, lost: Sequence[str], target: int, reason: str) -> RewindRefused:
        """The error that says why a rewind to version `target` cannot bring these data files back."""
        and_more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        return RewindRefused(
            f"the data file {lost[0]}{and_more} of version {target} {reason}; `penstock history "
            f"{self.where.topic}` lists later versions",
            self.where,
        )

    def damaged(self, opened: OpenTable) -> frozenset[str]:
        """The data files of the version that are missing, or have another size than the table says."""
        with lake_errors(self.uri):
            files = opened.files()
            sizes = dict(zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True))
            infos = filesystem(self.uri, self.lake.options).get_file_info(list(sizes))
        return frozenset(info.path for info in infos if info.size != sizes[info.path])

    def check(self, files: Sequence[SliceFacts]) -> None:
        """Check that the files exist and are whole; see `check_files`."""
        check_files(self.uri, self.lake.options, self.where, files)

    def discard(self, files: Sequence[SliceFacts]) -> None:
        """An object store has no disk that is full: housekeeping deletes the files there."""
        root = durable.local_path(self.uri)
        for path in (file.path for facts in files for file in facts.files) if root else ():
            assert root is not None
            with suppress(OSError):
                (root / path).unlink()

    def count_rows(self, snapshot: TableSnapshot, ranges: Sequence[CommittedRange]) -> list[int]:
        """The number of rows that the table has of each range: with its partition, offsets and loading time."""
        rows = snapshot.opened.dataset()
        with lake_errors(self.uri):
            return [rows.count_rows(filter=arrow_filter(committed, snapshot.layout)) for committed in ranges]

    @property
    def sets(self) -> ExactSets:
        """Reads the exact sets of the table."""
        return ExactSets.at(self.uri, self.lake.options)

    def exact_sets(self, committed: CommittedRange) -> Mapping[ExactCause, ExactOffsets]:
        """The sets of the exact causes of a range, without the offsets outside of it."""
        return self.sets.within(committed)

    def store_exact(self, offsets: ExactOffsets) -> StoredSet:
        """Store an exact set, so that an entry can name it."""
        return store_exact(self.uri, self.lake.options, offsets)

    def row_offsets(self, snapshot: TableSnapshot, committed: CommittedRange) -> Sequence[int]:
        """The offsets of the range's rows, ascending, each once."""
        rows, offset = snapshot.opened.dataset(), snapshot.layout.name("offset")
        with lake_errors(self.uri):
            offsets = rows.to_table(columns=[offset], filter=arrow_filter(committed, snapshot.layout)).column(offset)
        return sorted(set(offsets.to_pylist()))

    def message(self, snapshot: TableSnapshot, committed: CommittedRange, offset: int) -> LastMessage:
        """The last message of the range's rows with this offset, as it was read from the log."""
        row_filter = arrow_filter(committed, snapshot.layout) & (pc.field("offset") == offset)
        with lake_errors(self.uri):
            rows = snapshot.opened.dataset().to_table(filter=row_filter)
        return LastMessage.of(decoded_rows(rows.sort_by("inner").combine_chunks()))
