"""Reads the commits of a Delta table, one request each.

They are read from the commit files themselves. deltalake's `history` numbers the commits down from the version of its
handle, but starts with the newest commit of the table. If there are newer commits than the handle has, it gives them
under earlier numbers.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kafka_io.errors import Where
from pipelines.delta.commits import read_commit
from pipelines.delta.delta_log_segment import DELTA_LOG, POINTER, commit_file
from pipelines.delta.hidden_bounds import digest_of
from pipelines.table.table_commit import TableCommit
from resources.errors import LogTorn
from resources.stores.lake import filesystem, lake_errors, list_folder
from resources.stores.object_reads import ObjectReader

_MAX_COMMITS_AT_ONCE = 64
_GROWTH = 4
_CHECKPOINT = "checkpoint."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaLog:
    """The delta log of the table at `uri`."""

    uri: str
    options: Mapping[str, str]
    where: Where

    def commits(self, newest: int, *, after: int = -1) -> Iterator[TableCommit]:
        """Every commit of the versions in `(after, newest]`, newest first.

        They are read when the caller asks for them: the newest one alone, and then more and more at the same time.

        Raises:
            LogTorn: a commit file is missing or damaged.
            LakeUnavailable: the store does not answer.
        """
        reader, count = ObjectReader(self.uri, self.options), 1
        while newest > after:
            versions = range(newest, max(after, newest - count), -1)
            for version, text in zip(versions, self._texts(reader, versions), strict=True):
                yield self._commit(version, text)
            newest, count = newest - len(versions), min(count * _GROWTH, _MAX_COMMITS_AT_ONCE)

    def _texts(self, reader: ObjectReader, versions: Sequence[int]) -> Iterator[bytes]:
        """The texts of commit files. Those before a missing one are given too."""
        if reader.reads_at_once:
            with lake_errors(self.uri), suppress(FileNotFoundError):
                yield from reader.read_all([commit_file(version) for version in versions])
                return
        yield from (self.text(reader, version) for version in versions)

    def _commit(self, version: int, text: bytes) -> TableCommit:
        try:
            actions = [msgspec.json.decode(line) for line in text.splitlines() if line]
        except ValueError as error:
            raise LogTorn(
                f"{commit_file(version)} of the table {self.uri} is incomplete or damaged; if it is the last entry, "
                "and a loss of power truncated it, no load has reported it as committed: move it away and load "
                "again",
                self.where,
            ) from error
        return read_commit(version, actions, digest=digest_of(text))

    def text(self, reader: ObjectReader, version: int) -> bytes:
        """The text of a commit file.

        Raises:
            LogTorn: it is not there, although newer ones are.
            LakeUnavailable: the store does not answer.
        """
        with lake_errors(self.uri):
            try:
                return reader.read(commit_file(version))
            except FileNotFoundError as error:
                raise self._missing(version) from error

    def check_newest(self) -> None:
        """Find out whether a commit or a checkpoint is the reason why the table cannot be opened.

        It can be the newest commit, a checkpoint, the pointer to a checkpoint that is gone (fault E06), or a commit
        that is missing between the newest checkpoint and the newest commit. A loss of power can leave them incomplete,
        because files are complete on disk only when they are synced: see faults L10, L13. Penstock needs no checkpoint,
        because the commit files before it are still there.

        Raises:
            LogTorn: it is the reason.
        """
        files = filesystem(self.uri, self.options)
        with lake_errors(self.uri):
            infos = list_folder(files, DELTA_LOG)
        names = [info.base_name.partition(".") for info in infos]
        versions = {int(number) for number, _, suffix in names if suffix == "json" and number.isdecimal()}
        checkpoints = {int(number) for number, _, suffix in names if suffix.startswith(_CHECKPOINT)}
        if versions:
            next(self.commits(max(versions)))
        self._check_pointer(checkpoints)
        after = max(checkpoints, default=min(versions, default=0) - 1)
        for version in range(after + 1, max(versions, default=0)):
            if version not in versions:
                raise self._missing(version)
        for info in infos:
            if info.base_name.endswith(".checkpoint.parquet"):
                self._check_checkpoint(f"{DELTA_LOG}/{info.base_name}", files)

    def _check_pointer(self, checkpoints: Collection[int]) -> None:
        with lake_errors(self.uri):
            try:
                pointer = msgspec.json.decode(ObjectReader(self.uri, self.options).read(POINTER))
                pointed = int(pointer["version"])
            except FileNotFoundError:
                return
            except (LookupError, TypeError, ValueError):  # deltalake reads the log without a pointer that is damaged
                return
        if pointed not in checkpoints:
            raise LogTorn(
                f"{POINTER} of the table {self.uri} names the checkpoint of version {pointed}, which is not there: "
                f"somebody deleted it. Penstock does not need it: move {POINTER} away",
                self.where,
            )

    def _missing(self, version: int) -> LogTorn:
        return LogTorn(
            f"{commit_file(version)} of the table {self.uri} is missing: somebody deleted it, for example a "
            "clean-up of the log, and it is a part of the ledger. Copy it back; if it is lost, remove the "
            "table and load the topic again",
            self.where,
        )

    def _check_checkpoint(self, path: str, files: pafs.FileSystem) -> None:
        with lake_errors(self.uri):
            try:
                pq.read_metadata(path, filesystem=files)
            except pa.ArrowInvalid as error:
                raise LogTorn(
                    f"{path} of the table {self.uri} is incomplete or damaged, for example by a loss of power; "
                    f"Penstock does not need it: move it away, and also {DELTA_LOG}/_last_checkpoint",
                    self.where,
                ) from error
