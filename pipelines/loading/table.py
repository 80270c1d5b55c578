"""A topic's Delta table, through deltalake: snapshots with their cursor, and one log entry per commit.

Every commit of Penstock sets the `txn` of SEQUENCE, and deltalake refuses an entry whose handle has not seen the newest
version of such a `txn`. So an entry lands on the snapshot that it was built on, or not at all. A fresh handle would
take any version, also a lower one (FINDINGS, 5): handles are never renewed between reading the cursor and committing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from kafka_io.errors import Where
from pipelines.loading.ledger import KEY, SEQUENCE, Entry, Range
from pipelines.loading.logged import Logged, newest_entry
from pipelines.loading.rows import FILE_SCHEMA, PARTITION_COLUMN, TABLE_SCHEMA
from pipelines.loading.steps import step
from pipelines.loading.table_log import Clash, NoAnswer, Snapshot
from pipelines.loading.work import Facts
from resources import durable
from resources.errors import CommitUnknown, CursorStrayed, FileRefused, LakeUnavailable, LogTorn, TableForeign
from resources.lake import Lake, filesystem, lake_errors, reason_of

_TXN_EXPIRY = "delta.setTransactionRetentionDuration"
_CONFIGURATION = {
    # The log is the ledger: what it says is never cleaned away by itself.
    "delta.enableExpiredLogCleanup": "false",
}
_FOOTERS_AT_ONCE = 8
_LOGGED = {".json", ".parquet"}
WRITING = WriterProperties(compression="ZSTD", compression_level=1)
"""Of files that deltalake writes, when rows are replaced or files merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeTable:
    """The table of one topic in a lake."""

    lake: Lake
    uri: str
    where: Where

    @classmethod
    def of(cls, lake: Lake, cluster: str, topic: str) -> Self:
        """The table where a topic's belongs; nothing is opened yet."""
        return cls(lake=lake, uri=lake.table_uri(cluster, topic), where=Where(cluster=cluster, topic=topic))

    def snapshot(self) -> Snapshot:
        """The newest version. A table that is not there yet is made.

        Raises:
            LoadError: see `existing`.
        """
        return self.existing() or self._read(self._create())

    def existing(self) -> Snapshot | None:
        """The newest version; None where there is no table.

        Raises:
            LakeUnavailable: the store gives no answer.
            LogTorn: an entry of its log cannot be read.
            TableForeign: commits are there, but none of them is Penstock's; or its `txn` entries expire, for then a
                cursor could vanish (L15).
            CursorStrayed: the `txn` cursor is not where the newest entry left it, or somebody restored an old
                version (L14).
        """
        at = self.newest()
        if at is not None and at.strayed:
            raise CursorStrayed(at.strayed, self.where)
        return at

    def newest(self) -> Snapshot | None:
        """The newest version as it is, for what looks into a table or mends it; None where there is no table.

        Raises:
            LoadError: see `existing`; but of a cursor that strayed the snapshot tells.
        """
        try:
            handle = self.lake.open(self.uri)
        except LakeUnavailable:
            self._check_last_entry()
            raise
        return self._read(handle) if handle is not None else None

    def _check_last_entry(self) -> None:
        """Name the log's last entry if it is what keeps the table from being opened (L10, L13).

        Raises:
            LogTorn: it is.
        """
        files = filesystem(self.uri, self.lake.options)
        with self._store_errors():
            found = files.get_file_info(pafs.FileSelector("_delta_log", allow_not_found=True))
        numbers = [info.base_name.removesuffix(".json") for info in found if info.base_name.endswith(".json")]
        last = max((int(number) for number in numbers if number.isdecimal()), default=None)
        for _ in self._commits(last, after=last - 1) if last is not None else ():
            return

    def _create(self) -> DeltaTable:
        step("no table found")
        handle = self.lake.create(self.uri, TABLE_SCHEMA, partition_by=[PARTITION_COLUMN], configuration=_CONFIGURATION)
        step("table made")
        self.sync(after=-1)
        return handle

    def _read(self, handle: DeltaTable) -> Snapshot:
        expiry = handle.metadata().configuration.get(_TXN_EXPIRY)
        if expiry:
            raise TableForeign(f"the table sets {_TXN_EXPIRY} = {expiry}: cursors would expire", self.where)
        entry, restore = newest_entry(self.commits(handle.version()))
        if entry is None and (handle.version() > 0 or handle.file_uris()):
            raise TableForeign(f"the table {self.uri} holds data that Penstock did not load", self.where)
        found, told = handle.transaction_version(SEQUENCE) or 0, entry.sequence if entry else 0
        strayed = None
        if restore is not None:
            strayed = restore.strayed(self.where.topic)
        elif found != told:
            strayed = f"the newest commit is number {told}, the table's cursors are of {found}"
        return Snapshot(version=handle.version(), entry=entry, strayed=strayed, handle=handle)

    def entries(self, upto: Snapshot, *, after: int = -1) -> Iterator[tuple[int, Entry]]:
        """Version and entry of Penstock's commits in `(after, upto.version]`, newest first."""
        for version, info in self._commits(upto.version, after=after):
            if KEY in info:
                yield version, Entry.from_json(info[KEY])

    def commits(self, newest: int) -> Iterator[Logged]:
        """Every commit up to version `newest`, newest first, each read when it is asked for."""
        for version, info in self._commits(newest):
            yield Logged.of(version, info)

    def _commits(self, newest: int, *, after: int = -1) -> Iterator[tuple[int, dict[str, Any]]]:
        """Version and commit info, newest first, read from the log itself.

        deltalake's `history` counts down from the handle's version but begins at the newest commit there is: behind a
        handle that others have overtaken it tells later commits under earlier numbers.
        """
        files = filesystem(self.uri, self.lake.options)
        for version in range(newest, after, -1):
            with lake_errors(self.uri), files.open_input_stream(_log_entry(version)) as log:
                text = log.read()
            try:
                actions = [json.loads(line) for line in text.splitlines() if line]
            except ValueError as error:
                raise LogTorn(
                    f"{_log_entry(version)} of the table {self.uri} is not whole ({error}). If a loss of power cut it "
                    "and it is the last, no load was told that it landed: move it away and load again",
                    self.where,
                ) from error
            yield version, next((action["commitInfo"] for action in actions if "commitInfo" in action), {})

    def check(self, files: Sequence[Facts]) -> None:
        """Every file that `files` name is there, with the size and the rows its worker wrote (L07).

        deltalake would take a ghost.

        Raises:
            FileRefused: naming the file.
        """
        store = filesystem(self.uri, self.lake.options)
        named = {one.path: one for one in files if one.path}
        with self._store_errors():
            for info in store.get_file_info(list(named)):
                expected = named[info.path].size
                if info.type != pafs.FileType.File or info.size != expected:
                    found = f"has {info.size} bytes" if info.type == pafs.FileType.File else "is not there"
                    raise FileRefused(f"the data file {info.path} {found}, its worker wrote {expected}", self.where)
            with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as readers:
                for path, rows in readers.map(lambda path: (path, self._rows(store, path)), named):
                    if rows != named[path].rows:
                        told = f"holds {rows} rows, its worker wrote {named[path].rows}"
                        raise FileRefused(f"the data file {path} {told}", self.where)

    def _rows(self, store: pafs.FileSystem, path: str) -> int:
        try:
            with store.open_input_file(path) as file:
                return int(pq.read_metadata(file).num_rows)
        except pa.ArrowInvalid as error:
            raise FileRefused(f"the data file {path} is no Parquet file: {error}", self.where) from error

    def append(self, at: Snapshot, entry: Entry, files: Sequence[Facts]) -> int:
        """Write `entry` and the files on top of `at`; the version they became.

        Raises:
            Clash: another commit is on top of it already.
            NoAnswer: it is not known whether they landed.
        """
        with log_errors():
            at.handle.create_write_transaction(
                [_add(one) for one in files if one.path],
                mode="append",
                schema=at.handle.schema(),
                partition_by=[PARTITION_COLUMN],
                commit_properties=properties(at, entry),
            )
            step("log entry written")
            return self.version_of(entry, after=at.version)

    def held(self, at: Snapshot, pieces: Sequence[Range]) -> list[int]:
        """How many rows of each piece the table has: rows of its partition, offsets and loading time."""
        rows = at.handle.to_pyarrow_dataset()
        with self._store_errors():
            return [rows.count_rows(filter=_in_piece(piece)) for piece in pieces]

    def replace(self, at: Snapshot, entry: Entry, pieces: Sequence[Range], files: Sequence[Facts]) -> int:
        """Write `entry` on top of `at`, with the rows of `files` instead of those of `pieces`; the version.

        Rows are written anew in one process, also what shares a file with replaced ones. Raises what `append` does.
        """
        new = [one for one in files if one.rows]
        if not new and not any(self.held(at, pieces)):
            return self.append(at, entry, [])  # deltalake's delete writes no entry where it finds no row
        told: dict[str, Any] = {"writer_properties": WRITING, "commit_properties": properties(at, entry)}
        same = " OR ".join(_is_piece(piece) for piece in [*pieces, *(Range.of(one) for one in new)])
        with log_errors():
            if new:
                write_deltalake(at.handle, self._staged(new), mode="overwrite", predicate=same, **told)
            else:
                at.handle.delete(same, **told)
            step("log entry written")
            return self.version_of(entry, after=at.version)

    def restore(self, at: Snapshot, entry: Entry) -> int:
        """Write `entry` on top of `at`, with the files that its target had; the version. Raises what `append` does.

        All its cursors are set, for those that are told need not be those that are there.
        """
        with log_errors():
            at.handle.restore(entry.target, commit_properties=properties(replace(at, entry=None), entry))
            step("log entry written")
            return self.version_of(entry, after=at.version)

    def _staged(self, files: Sequence[Facts]) -> pa.RecordBatchReader:
        paths = [one.path for one in files if one.path]
        store = filesystem(self.uri, self.lake.options)
        batches = pads.dataset(paths, schema=FILE_SCHEMA, filesystem=store, format="parquet").to_batches()
        [day] = {dated(path) for path in paths}
        rows = (batch.append_column(PARTITION_COLUMN, pa.repeat(day, batch.num_rows)) for batch in batches)
        return pa.RecordBatchReader.from_batches(TABLE_SCHEMA, rows)

    def version_of(self, entry: Entry, *, after: int) -> int:
        """The version above `after` that `entry` became.

        Raises:
            NoAnswer: it is not there.
        """
        handle = self.lake.open(self.uri)
        if handle is not None:
            now = Snapshot(version=handle.version(), entry=None)
            for version, one in self.entries(now, after=after):
                if one.commit == entry.commit:
                    return version
        raise NoAnswer(f"the entry {entry.commit} was written, but is not there")

    def sync(self, *, after: int) -> None:
        """Force what the log has of versions above `after` to disk, checkpoints too.

        Raises:
            CommitUnknown: the disk could not: a loss of power may undo them.
        """
        root = durable.local_path(self.uri)
        if root is None:
            return
        try:
            folder = root / "_delta_log"
            for file in sorted(folder.iterdir()):
                number = file.name.partition(".")[0]
                # Not what another writer is about to make an entry of (`<n>.json#1`): that may be gone at any time.
                whole = file.suffix in _LOGGED and number.isdigit() and int(number) > after
                if whole or file.name == "_last_checkpoint":
                    durable.sync(file)
            durable.sync_below(Path(self.lake.root), folder)
        except OSError as error:
            raise CommitUnknown(f"the commit landed, but could not be forced to disk: {error}", self.where) from error

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LakeUnavailable(f"the table {self.uri} cannot be read: {error}", self.where) from error


@contextmanager
def log_errors() -> Iterator[None]:
    """Errors of a write to the log leave this block as Clash or NoAnswer."""
    try:
        yield
    except CommitFailedError as error:
        raise Clash(reason_of(error)) from error
    except (DeltaError, OSError, LakeUnavailable) as error:
        raise NoAnswer(reason_of(error)) from error


def properties(at: Snapshot, entry: Entry) -> CommitProperties:
    """What goes beside the files into the log: the entry, its number, and the cursors that it moves."""
    before = at.entry.covered if at.entry and at.entry.topic == entry.topic else {}
    moved = [id_ for id_, (_, cursor) in sorted(entry.covered.items()) if id_ not in before or before[id_][1] != cursor]
    cursors = [Transaction(entry.topic.app_id(id_), entry.covered[id_][1]) for id_ in moved]
    return CommitProperties(
        custom_metadata={KEY: entry.to_json()},
        app_transactions=[Transaction(SEQUENCE, entry.sequence), *cursors],
    )


def strayed_cursors(snapshot: Snapshot) -> Iterator[str]:
    """A sentence for each `txn` that is not where the newest entry left it."""
    entry = snapshot.entry
    if entry is None:
        return
    expected: Mapping[str, tuple[str, int]] = {
        SEQUENCE: ("the number of the newest commit", entry.sequence),
        **{entry.topic.app_id(id_): (f"partition {id_}: the cursor", at) for id_, (_, at) in entry.covered.items()},
    }
    for app_id, (name, at) in expected.items():
        found = snapshot.handle.transaction_version(app_id)
        if found != at:
            yield f"{name} stands at {found}, the newest commit left it at {at}"


def _log_entry(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def dated(path: str) -> pa.Scalar:
    """The value of the partition column that the folder of a file tells."""
    [value] = [part.partition("=")[2] for part in path.split("/") if part.startswith(f"{PARTITION_COLUMN}=")]
    return pa.scalar(value).cast(pa.date32())


def _in_piece(piece: Range) -> pads.Expression:
    same = (pads.field("partition") == piece.partition) & (pads.field("loaded_at") == _time(piece))
    if piece.broker is not None:
        same &= pads.field("broker") == piece.broker
    return same & (pads.field("offset") >= piece.start) & (pads.field("offset") < piece.stop)


def _time(piece: Range) -> pa.Scalar:
    return pa.scalar(piece.loaded_at_us, TABLE_SCHEMA.field("loaded_at").type)


def _is_piece(piece: Range) -> str:
    """The same in SQL; of numbers only, so nothing is to be quoted. No column in it is ever null where it is asked."""
    broker = "" if piece.broker is None else f"broker = {piece.broker} AND "
    time = f"arrow_cast({piece.loaded_at_us}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    offsets = f'"offset" >= {piece.start} AND "offset" < {piece.stop}'
    return f"({broker}partition = {piece.partition} AND {offsets} AND loaded_at = {time})"


def _add(facts: Facts) -> AddAction:
    assert facts.path is not None
    folder = facts.path.partition("/")[0]
    return AddAction(
        path=facts.path,
        size=facts.size,
        partition_values={PARTITION_COLUMN: folder.removeprefix(f"{PARTITION_COLUMN}=")},
        modification_time=int(datetime.now(UTC).timestamp() * 1000),
        data_change=True,
        stats=json.dumps(facts.stats),
    )
