"""The newest part of the log of a table: a checkpoint and the entries after it, read once.

In an object store it takes one request for the pointer to the checkpoint, one listing, and one for each object, all of
which are read at the same time. Only logs as Penstock and most writers write them are read here. For everything else
LogUnclear is raised, and deltalake reads the table: checkpoints in parts or of version 2, commits outside of the log,
holes, entries that are empty or no JSON, and later versions of Delta's protocol.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kafka_io.typed_json import decode_json
from pipelines.delta.commits import LogCommit
from resources.stores.store_client import StoreClient
from resources.stores.stored_object import StoredObject

LOG = "_delta_log"
POINTER = f"{LOG}/_last_checkpoint"
"""The object that names the newest checkpoint."""
_NO_CHECKPOINT = -1
_NUMBERED = re.compile(rf"{LOG}/(\d{{20}})\.(.+)")
_REDUNDANT = re.compile(r"crc|\d{20}\.compacted\.json|json#\d+")
"""Objects that repeat what is in the entries: checksums of versions, several entries in one, and entries that deltalake
has not renamed yet."""
_FOREIGN_FOLDERS = tuple(f"{LOG}/{name}/" for name in ("_sidecars", "_staged_commits", "_commits"))
_MAX_READER_VERSION = 3
_OTHER_CHECKPOINTS = "v2Checkpoint"


class LogUnclear(Exception):
    """The log has something that only deltalake can read, or refuse."""


def log_entry(version: int) -> str:
    """The path of an entry of the log, relative to the table."""
    return f"{LOG}/{version:020d}.json"


def checkpoint_file(version: int) -> str:
    """The path of the checkpoint of a version, relative to the table."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


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
    def of_actions(cls, metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> Self:
        """The definition of these actions of the log."""
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
    """A checkpoint, and all entries after it.

    Args:
        checkpoint_version: the version of the checkpoint; -1 without one.
        checkpoint: the checkpoint, if there is one.
        entries: the entries after the checkpoint by version, in order; if there are none, the entry of the checkpoint.
    """

    checkpoint_version: int = _NO_CHECKPOINT
    checkpoint: StoredObject | None = None
    entries: Mapping[int, StoredObject] = field(repr=False)

    @property
    def version(self) -> int:
        """The newest version."""
        return max(self.entries)

    def followed_by(self, content: bytes) -> Self:
        """The segment with one more entry."""
        version = self.version + 1
        return replace(self, entries={**self.entries, version: StoredObject(log_entry(version), content=content)})

    def commit(self, version: int) -> LogCommit:
        """The commit of one of the entries.

        Raises:
            LogUnclear: it is not what an entry must be.
        """
        content = self.entries[version].content
        return LogCommit.of(version, list(_actions(content)), digest=sha256(content).hexdigest())

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
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
            LogUnclear: only deltalake can read it.
        """
        try:
            definition = TableDefinition.of_actions(self.metadata, self._newest("protocol"))
        except (KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
            raise LogUnclear from error
        if definition.min_reader_version > _MAX_READER_VERSION or _OTHER_CHECKPOINTS in definition.reader_features:
            raise LogUnclear
        return definition

    def _newest(self, kind: str) -> Mapping[str, Any]:
        """The newest action of a kind of which a version has one."""
        for version in sorted(self.entries, reverse=True):
            for action in _actions(self.entries[version].content, with_text=f'"{kind}"'.encode()):
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
        yield from self.entries.values()


def _check_complete(entry: StoredObject) -> StoredObject:
    """The entry, if each of its lines is JSON. After a loss of power it can be empty, or end too early (fault L10).

    Raises:
        LogUnclear: it is not what an entry must be.
    """
    try:
        lines = [decode_json(line, msgspec.Raw) for line in entry.content.splitlines() if line]
    except ValueError as error:
        raise LogUnclear from error
    if not lines:
        raise LogUnclear
    return entry


def _actions(content: bytes, *, with_text: bytes = b"") -> Iterator[Mapping[str, Any]]:
    """The actions of an entry, one in each line; only those of lines with this text.

    Raises:
        LogUnclear: it is not what an entry must be.
    """
    if with_text not in content:
        return
    try:
        yield from (decode_json(line, dict[str, Any]) for line in content.splitlines() if line and with_text in line)
    except ValueError as error:
        raise LogUnclear from error


def read_segment(client: StoreClient) -> DeltaLogSegment | None:
    """The newest part of the log of the table; None if there is no table.

    Raises:
        LogUnclear: only deltalake can read the log.
        OSError: the store does not answer.
    """
    pointed = _pointed_version(client)
    names = _Names.listed(client, after=f"{LOG}/{pointed:020d}" if pointed >= 0 else "")
    if not names.checkpoints and not names.entries:
        if pointed >= 0:
            raise LogUnclear
        return None
    base = max(names.checkpoints, default=_NO_CHECKPOINT)
    versions = [version for version in sorted(names.entries) if version > base] or [base]
    if versions != list(range(versions[0], versions[0] + len(versions))) or versions[0] > base + 1:
        raise LogUnclear
    entries = {version: log_entry(version) for version in versions}
    files = [*([checkpoint_file(base)] if base >= 0 else []), *entries.values()]
    try:
        contents = {file.path: file for file in client.read_all(files)}
    except FileNotFoundError as error:  # another program removes the table, or cleans up its log
        raise LogUnclear from error
    segment = DeltaLogSegment(
        checkpoint_version=base,
        checkpoint=contents[checkpoint_file(base)] if base >= 0 else None,
        entries={version: _check_complete(contents[path]) for version, path in entries.items()},
    )
    segment.definition  # noqa: B018 - raises LogUnclear
    return segment


def read_newer(client: StoreClient, segment: DeltaLogSegment) -> DeltaLogSegment | None:
    """The segment with the entries that were written since; None if the log no longer has its newest entry.

    This takes one listing, and one request for each new entry.

    Raises:
        LogUnclear: only deltalake can read the log.
        OSError: the store does not answer.
    """
    newest = segment.version
    names = _Names.listed(client, after=f"{LOG}/{newest:020d}")
    e_tag = segment.entries[newest].e_tag
    if not e_tag or names.entries.get(newest) != e_tag:
        return None
    versions = sorted(version for version in names.entries if version > newest)
    if versions != list(range(newest + 1, newest + 1 + len(versions))):
        raise LogUnclear
    try:
        new_entries = client.read_all([log_entry(version) for version in versions])
    except FileNotFoundError as error:
        raise LogUnclear from error
    added = dict(zip(versions, map(_check_complete, new_entries), strict=True))
    return replace(segment, entries={**segment.entries, **added})


def _pointed_version(client: StoreClient) -> int:
    """The version of the checkpoint that the log points to; -1 without one.

    Raises:
        LogUnclear: it is a checkpoint of another kind.
    """
    try:
        pointer = json.loads(client.read(POINTER).content)
        if "parts" in pointer or "v2Checkpoint" in pointer:
            raise LogUnclear
        return int(pointer["version"])
    except FileNotFoundError:
        return _NO_CHECKPOINT
    except (ValueError, KeyError, TypeError) as error:
        raise LogUnclear from error


@dataclass(frozen=True, slots=True)
class _Names:
    """The marks of the entries by version, and the versions of the checkpoints."""

    entries: Mapping[int, str | None]
    checkpoints: frozenset[int]

    @classmethod
    def listed(cls, client: StoreClient, *, after: str) -> Self:
        """The objects of the log whose paths sort after `after`.

        Raises:
            LogUnclear: it has objects whose meaning only deltalake knows.
            OSError: the store does not answer.
        """
        entries, checkpoints = {}, set()
        for listed in client.list(LOG, after=after):
            match = _NUMBERED.fullmatch(listed.path)
            if listed.path.startswith(_FOREIGN_FOLDERS):
                raise LogUnclear
            if match and match[2] == "json":
                entries[int(match[1])] = listed.e_tag
            elif match and match[2] == "checkpoint.parquet":
                checkpoints.add(int(match[1]))
            elif match and not _REDUNDANT.fullmatch(match[2]):
                raise LogUnclear
        return cls(entries, frozenset(checkpoints))
