"""Replaces bounds in the delta log of a table: in commit files, checkpoints and checksums.

They are those of personal columns, and those that deltalake leaves out or rounds; see hidden_bounds.py.

A table keeps all its commit files, because they are its ledger. So a value that was the smallest or the largest of its
file would be in the log for ever (fault Y01), and in each checkpoint of that time (fault Y02). A scrub writes such
objects again, one after the other. Each of them is the old or the new one for every reader, and a scrub that was
killed is continued by the next one. What a commit says stays the same, and so does its digest: see `digest_of`.

A process that opened the table before the scrub knows the old bounds, and may write them into a new checkpoint. The
next scrub removes them.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from pipelines.delta.delta_log_segment import DELTA_LOG, POINTER, checkpoint_file
from pipelines.delta.hidden_bounds import HiddenBounds
from pipelines.delta.reader import TableReader
from pipelines.table.lake_table import ScrubResult
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.lake import filesystem, lake_errors, list_folder
from resources.stores.store_client import store_client

_COMMITS = re.compile(r"(\d{20})(\.\d{20}\.compacted)?\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_PART = re.compile(r"\d{20}\.checkpoint\..+|.+\.parquet")
"""Checkpoints of other kinds, and the files of `_sidecars`."""
_CHECKSUM = re.compile(r".*\.crc")
_LEFTOVER = re.compile(r"\..+\.tmp|.*\.json#\d+|_commit_.+\.tmp")
"""Files of writers that were killed before they renamed them to commit files."""
_LEFTOVER_AGE = timedelta(hours=1)
_ACTIONS = ("add", "remove")
_PARSED = "stats_parsed"


def scrub(
    table: TableReader, names: Collection[str] = (), *, deleted: Collection[str] = (), after: int = -1
) -> ScrubResult:
    """Remove the bounds of personal columns from the log of a table, and put right what deltalake has written.

    Args:
        table: the table.
        names: personal columns that the table does not mark, or not yet.
        deleted: the paths of files that were deleted, and of which the log needs no bounds of fields.
        after: only commits and checkpoints of later versions are looked at.

    Raises:
        LakeUnavailable: the store does not answer. The next scrub continues.
    """
    opened = table.open_newest()
    bounds = HiddenBounds.of(opened.schema(), names, deleted) if opened else HiddenBounds()
    if not bounds:
        return ScrubResult()
    columns = tuple(sorted(bounds.personal))
    log = _Log(table=table, bounds=bounds, after=after)
    if not log.can_replace:
        reason = f"the store of {table.uri} cannot replace a file of the delta log in one step"
        return ScrubResult(columns=columns, unsupported=reason)
    with lake_errors(table.uri):
        commits = log.scrub_commits()
        others = log.scrub_checkpoints() if bounds.hides else log.mend_checkpoint()
        return ScrubResult(columns=columns, commits=commits, others=others)


def objects_with_bounds(table: TableReader, names: Collection[str] = (), *, deleted: Collection[str] = ()) -> int:
    """The number of commit files and checkpoints in which a `scrub` with the same arguments would hide bounds.

    Raises:
        LakeUnavailable: the store does not answer.
    """
    opened = table.open_newest()
    bounds = HiddenBounds.of(opened.schema(), names, deleted) if opened else HiddenBounds()
    with lake_errors(table.uri):
        return _Log(table=table, bounds=bounds, after=-1).count_with_bounds() if bounds.hides else 0


@dataclass(frozen=True, kw_only=True)
class _Log:
    """The objects of a delta log."""

    table: TableReader
    bounds: HiddenBounds
    after: int

    @cached_property
    def _files(self) -> pafs.FileSystem:
        return filesystem(self.table.uri, self.table.lake.options)

    @cached_property
    def _client(self) -> object:
        return store_client(self.table.uri, self.table.lake.options)

    @property
    def can_replace(self) -> bool:
        """Whether readers see the old or the new content of an object that is replaced, and never a part of one."""
        return self._client is not None

    def _objects(self, pattern: re.Pattern[str]) -> Iterator[tuple[pafs.FileInfo, re.Match[str]]]:
        infos = list_folder(self._files, DELTA_LOG, recursive=True)
        for info in sorted(infos, key=lambda info: str(info.path)):
            match = pattern.fullmatch(info.base_name)
            if match and info.type == pafs.FileType.File:
                yield info, match

    def scrub_commits(self) -> int:
        """Write the commit files again that have bounds; returns their number. Older ones come first."""
        changed = 0
        for info, match in self._objects(_COMMITS):
            if int(match[1]) > self.after:
                content = self._read(info.path)
                hidden = self.bounds.hidden(content)
                if hidden != content:
                    self._replace(info.path, hidden)
                    changed += 1
                    failpoint("log entry scrubbed")
        return changed

    def count_with_bounds(self) -> int:
        """The number of commit files and checkpoints that have bounds."""
        commits = (self._read(info.path) for info, _ in self._objects(_COMMITS))
        checkpoints = (info.path for info, _ in self._objects(_CHECKPOINT))
        return sum(self.bounds.hidden(content) != content for content in commits) + sum(
            map(self._has_bounds, checkpoints)
        )

    def scrub_checkpoints(self) -> int:
        """Replace or delete what has bounds besides commit files; returns how many objects these are."""
        versions = {int(match[1]): info.path for info, match in self._objects(_CHECKPOINT)}
        old = {version for version, path in versions.items() if version > self.after and self._has_bounds(path)}
        unneeded = [info.path for info, _ in self._objects(_PART) if info.path not in versions.values()]
        kept = self._new_checkpoint() if old or unneeded else None
        unneeded += [versions[version] for version in sorted(old - {kept})]
        unneeded += [info.path for info, _ in self._objects(_CHECKSUM)]
        unneeded += [info.path for info, _ in self._objects(_LEFTOVER) if _is_old(info)]
        for path in unneeded:
            self._files.delete_file(path)
            failpoint("old checkpoint deleted")
        return len(unneeded) + len(old & {kept})

    def mend_checkpoint(self) -> int:
        """Replace wrong bounds in the newest checkpoint, which readers begin with; returns how many were replaced."""
        versions = {int(match[1]): info.path for info, match in self._objects(_CHECKPOINT)}
        newest = max(versions, default=None)
        if newest is None or newest <= self.after or not self._has_bounds(versions[newest]):
            return 0
        self._hide_checkpoint(newest)
        return 1

    def _new_checkpoint(self) -> int:
        """Write a checkpoint of the newest version; returns the version."""
        handle = self.table.lake.open(self.table.uri)
        assert handle is not None
        handle.create_checkpoint()  # it takes the bounds from the newest checkpoint that is there
        failpoint("checkpoint written")
        self._hide_checkpoint(handle.version())
        return handle.version()

    def _has_bounds(self, path: str) -> bool:
        checkpoint = self._checkpoint(path)
        return any(
            not self._hidden_column(checkpoint, kind).equals(checkpoint.column(kind)) for kind in _kinds(checkpoint)
        )

    def _hide_checkpoint(self, version: int) -> None:
        """Replace the bounds in a checkpoint, and write the pointer to it."""
        path = checkpoint_file(version)
        checkpoint = self._checkpoint(path)
        for kind in _kinds(checkpoint):
            place = checkpoint.schema.get_field_index(kind)
            checkpoint = checkpoint.set_column(
                place, checkpoint.schema.field(kind), self._hidden_column(checkpoint, kind)
            )
        sink = pa.BufferOutputStream()
        pq.write_table(checkpoint, sink, write_statistics=False)
        content = sink.getvalue().to_pybytes()
        self._replace(path, content)
        failpoint("checkpoint scrubbed")
        pointer = {"version": version, "size": checkpoint.num_rows, "sizeInBytes": len(content)}
        self._replace(POINTER, msgspec.json.encode(pointer))

    def _checkpoint(self, path: str) -> pa.Table:
        return pq.ParquetFile(pa.BufferReader(self._read(path))).read()

    def _hidden_column(self, checkpoint: pa.Table, kind: str) -> pa.ChunkedArray:
        """The actions of a kind without bounds. Statistics that are no text are left out: the text has them too."""
        column = checkpoint.column(kind).combine_chunks()
        members = {member.name: column.field(member.name) for member in column.type}
        files = zip(members["path"].to_pylist(), members["stats"].to_pylist(), strict=True)
        texts = [self.bounds.hidden_stats(unquote(path), text) if text else text for path, text in files]
        members["stats"] = pa.array(texts, members["stats"].type)
        if _PARSED in members:
            members[_PARSED] = pa.nulls(len(column), members[_PARSED].type)
        return pa.chunked_array(
            [pa.StructArray.from_arrays(members.values(), fields=list(column.type), mask=column.is_null())]
        )

    def _read(self, path: str) -> bytes:
        with self._files.open_input_stream(path) as stream:
            content: bytes = stream.read()
        return content

    def _replace(self, path: str, content: bytes) -> None:
        root = durable.local_path(self.table.uri)
        if root is not None:
            durable.replace_file(root / path, content)
        else:
            client = store_client(self.table.uri, self.table.lake.options)
            assert client is not None
            client.write(path, content)


def _kinds(checkpoint: pa.Table) -> list[str]:
    """The kinds of actions in a checkpoint that may have statistics."""
    return [
        kind for kind in _ACTIONS if kind in checkpoint.schema.names and _has_stats(checkpoint.schema.field(kind).type)
    ]


def _has_stats(kind: pa.StructType) -> bool:
    return bool(kind.get_field_index("stats") >= 0)


def _is_old(info: pafs.FileInfo) -> bool:
    return bool(info.mtime < datetime.now(UTC) - _LEFTOVER_AGE)
