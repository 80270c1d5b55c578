"""The newest part of the delta log of a table: a checkpoint and the commits after it, read once.

In an object store it takes one request for the pointer to the checkpoint, one listing, and one for each object, all of
which are read at the same time. Only delta logs as Penstock and most writers write them are read here. For everything
else DeltaLogUnclear is raised, and deltalake reads the table: checkpoints in parts or of version 2, commits outside of
`_delta_log`, holes, and commit files that are empty or no JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kafka_io.typed_json import decode_json
from pipelines.delta.commits import Action, ActionFields, read_commit
from pipelines.delta.hidden_bounds import digest_of
from pipelines.table.table_commit import TableCommit
from resources.stores.store_client import StoreClient
from resources.stores.stored_object import StoredObject

DELTA_LOG = "_delta_log"
POINTER = f"{DELTA_LOG}/_last_checkpoint"
"""The object that names the newest checkpoint."""
_NO_CHECKPOINT = -1
_NUMBERED = re.compile(rf"{DELTA_LOG}/(\d{{20}})\.(.+)")
_REDUNDANT = re.compile(r"crc|\d{20}\.compacted\.json|json#\d+")
"""Objects that repeat what is in the commit files: checksums of versions, several commits in one, and commit files that
deltalake has not renamed yet."""
_FOREIGN_FOLDERS = tuple(f"{DELTA_LOG}/{name}/" for name in ("_sidecars", "_staged_commits", "_commits"))


class DeltaLogUnclear(Exception):
    """The delta log has something that only deltalake can read, or refuse."""


def commit_file(version: int) -> str:
    """The path of the commit file of a version, relative to the table."""
    return f"{DELTA_LOG}/{version:020d}.json"


def checkpoint_file(version: int) -> str:
    """The path of the checkpoint of a version, relative to the table."""
    return f"{DELTA_LOG}/{version:020d}.checkpoint.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """The id, properties, columns and protocol of a version of a table.

    `schema_json` is Delta's text of the schema.
    """

    table_id: str
    configuration: Mapping[str, str]
    schema_json: str
    min_reader_version: int
    min_writer_version: int
    reader_features: Sequence[str] = ()
    writer_features: Sequence[str] = ()

    @classmethod
    def of_handle(cls, handle: DeltaTable) -> Self:
        """The definition as deltalake has read it."""
        metadata, protocol = handle.metadata(), handle.protocol()
        return cls(
            table_id=str(metadata.id),
            configuration=metadata.configuration,
            schema_json=handle.schema().to_json(),
            min_reader_version=protocol.min_reader_version,
            min_writer_version=protocol.min_writer_version,
            reader_features=protocol.reader_features or (),
            writer_features=protocol.writer_features or (),
        )

    @classmethod
    def of_actions(cls, metadata: ActionFields, protocol: ActionFields) -> Self:
        """The definition of these actions."""
        return cls(
            table_id=metadata["id"],
            configuration=metadata["configuration"],
            schema_json=metadata["schemaString"],
            min_reader_version=protocol["minReaderVersion"],
            min_writer_version=protocol["minWriterVersion"],
            reader_features=protocol.get("readerFeatures") or (),
            writer_features=protocol.get("writerFeatures") or (),
        )


@dataclass(frozen=True, kw_only=True)
class DeltaLogSegment:
    """A checkpoint, and all commits after it.

    Args:
        checkpoint_version: the version of the checkpoint; -1 without one.
        checkpoint: the checkpoint, if there is one.
        commit_files: those after the checkpoint by version, in order; if there are none, that of its own version.
    """

    checkpoint_version: int = _NO_CHECKPOINT
    checkpoint: StoredObject | None = None
    commit_files: Mapping[int, StoredObject] = field(repr=False)

    @property
    def version(self) -> int:
        """The newest version."""
        return max(self.commit_files)

    def followed_by(self, content: bytes) -> Self:
        """The segment with one more commit."""
        version = self.version + 1
        added = StoredObject(commit_file(version), content=content)
        return replace(self, commit_files={**self.commit_files, version: added})

    def commit(self, version: int) -> TableCommit:
        """The commit of one of the commit files.

        Raises:
            DeltaLogUnclear: it is not what a commit file must be.
        """
        content = self.commit_files[version].content
        return read_commit(version, list(_actions(content)), digest=digest_of(content))

    @cached_property
    def metadata(self) -> ActionFields:
        """The newest action with the id, columns and properties of the table. `definition` has checked it."""
        action = self._newest("metaData")
        table_format = action.get("format") or {}
        return {
            **action,
            "configuration": dict(action.get("configuration") or {}),
            "format": {**table_format, "options": dict(table_format.get("options") or {})},
        }

    @cached_property
    def definition(self) -> TableDefinition:
        """What the newest version says about the table.

        Raises:
            DeltaLogUnclear: only deltalake can read it.
        """
        try:
            definition = TableDefinition.of_actions(self.metadata, self._newest("protocol"))
        except (KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
            raise DeltaLogUnclear from error
        return definition

    def _newest(self, kind: str) -> ActionFields:
        """The newest action of a kind of which a version has one."""
        for version in sorted(self.commit_files, reverse=True):
            for action in _actions(self.commit_files[version].content, with_text=f'"{kind}"'.encode()):
                if kind in action:
                    return dict(action[kind])
        if self.checkpoint is None:
            raise KeyError(kind)
        column = self._checkpoint_file.read(columns=[kind]).column(kind)
        [action] = column.filter(column.is_valid()).to_pylist()
        return dict(action)

    @cached_property
    def _checkpoint_file(self) -> pq.ParquetFile:
        assert self.checkpoint is not None
        return pq.ParquetFile(pa.BufferReader(self.checkpoint.content))  # `read_table` would import pandas

    def files(self) -> Iterator[StoredObject]:
        """The objects of the segment."""
        if self.checkpoint is not None:
            yield self.checkpoint
        yield from self.commit_files.values()


def _check_complete(commit: StoredObject) -> StoredObject:
    """The commit file, if each of its lines is JSON. After a loss of power it can be empty, or cut off (fault L10).

    Raises:
        DeltaLogUnclear: it is not what a commit file must be.
    """
    try:
        lines = [decode_json(line, msgspec.Raw) for line in commit.content.splitlines() if line]
    except ValueError as error:
        raise DeltaLogUnclear from error
    if not lines:
        raise DeltaLogUnclear
    return commit


def _actions(content: bytes, *, with_text: bytes = b"") -> Iterator[Action]:
    """The actions of a commit file, one in each line; only those of lines with this text.

    Raises:
        DeltaLogUnclear: it is not what a commit file must be.
    """
    if with_text not in content:
        return
    try:
        yield from (decode_json(line, dict) for line in content.splitlines() if line and with_text in line)
    except ValueError as error:
        raise DeltaLogUnclear from error


def read_segment(client: StoreClient) -> DeltaLogSegment | None:
    """The newest part of the delta log of the table; None if there is no table.

    Raises:
        DeltaLogUnclear: only deltalake can read the delta log.
        OSError: the store does not answer.
    """
    # Of a long delta log only the end is listed: with thousands of commits a listing takes many requests (fault L22).
    pointed = _pointed_version(client)
    names = _Names.listed(client, after=f"{DELTA_LOG}/{pointed:020d}" if pointed >= 0 else "")
    if not names.checkpoints and not names.commits:
        if pointed >= 0:
            raise DeltaLogUnclear
        return None
    base = max(names.checkpoints, default=_NO_CHECKPOINT)
    versions = [version for version in sorted(names.commits) if version > base] or [base]
    # With a hole, somebody has deleted a commit file, or is deleting some now (faults L13, P06): deltalake decides.
    if versions != list(range(versions[0], versions[0] + len(versions))) or versions[0] > base + 1:
        raise DeltaLogUnclear
    files = [*([checkpoint_file(base)] if base >= 0 else []), *map(commit_file, versions)]
    try:
        contents = {file.path: file for file in client.read_all(files)}
    except FileNotFoundError as error:  # another program removes the table, or cleans up its files (faults P06, P07)
        raise DeltaLogUnclear from error
    segment = DeltaLogSegment(
        checkpoint_version=base,
        checkpoint=contents[checkpoint_file(base)] if base >= 0 else None,
        commit_files={version: _check_complete(contents[commit_file(version)]) for version in versions},
    )
    segment.definition  # noqa: B018 - raises DeltaLogUnclear
    return segment


def read_newer(client: StoreClient, segment: DeltaLogSegment) -> DeltaLogSegment | None:
    """The segment with the commits that were written since; None if its newest commit is not there any more.

    This takes one listing, and one request for each new commit.

    Raises:
        DeltaLogUnclear: only deltalake can read the delta log.
        OSError: the store does not answer.
    """
    newest = segment.version
    names = _Names.listed(client, after=f"{DELTA_LOG}/{newest:020d}")
    # A table that was created again has the same versions, but its commit files have other marks (fault P07).
    e_tag = segment.commit_files[newest].e_tag
    if not e_tag or names.commits.get(newest) != e_tag:
        return None
    versions = sorted(version for version in names.commits if version > newest)
    if versions != list(range(newest + 1, newest + 1 + len(versions))):
        raise DeltaLogUnclear
    try:
        new_files = client.read_all([commit_file(version) for version in versions])
    except FileNotFoundError as error:
        raise DeltaLogUnclear from error
    added = dict(zip(versions, map(_check_complete, new_files), strict=True))
    return replace(segment, commit_files={**segment.commit_files, **added})


def _pointed_version(client: StoreClient) -> int:
    """The version of the checkpoint that the pointer names; -1 without one.

    Raises:
        DeltaLogUnclear: it is a checkpoint of another kind.
    """
    try:
        pointer = json.loads(client.read(POINTER).content)
        if "parts" in pointer or "v2Checkpoint" in pointer:
            raise DeltaLogUnclear
        return int(pointer["version"])
    except FileNotFoundError:
        return _NO_CHECKPOINT
    except (ValueError, KeyError, TypeError) as error:
        raise DeltaLogUnclear from error


@dataclass(frozen=True, slots=True)
class _Names:
    """The marks of the commit files by version, and the versions of the checkpoints."""

    commits: Mapping[int, str | None]
    checkpoints: frozenset[int]

    @classmethod
    def listed(cls, client: StoreClient, *, after: str) -> Self:
        """The objects of the delta log whose paths sort after `after`.

        Raises:
            DeltaLogUnclear: it has objects whose meaning only deltalake knows.
            OSError: the store does not answer.
        """
        commits, checkpoints = {}, set()
        for listed in client.list(DELTA_LOG, after=after):
            match = _NUMBERED.fullmatch(listed.path)
            if listed.path.startswith(_FOREIGN_FOLDERS):
                raise DeltaLogUnclear
            if match and match[2] == "json":
                commits[int(match[1])] = listed.e_tag
            elif match and match[2] == "checkpoint.parquet":
                checkpoints.add(int(match[1]))
            elif match and not _REDUNDANT.fullmatch(match[2]):
                raise DeltaLogUnclear
        return cls(commits, frozenset(checkpoints))
