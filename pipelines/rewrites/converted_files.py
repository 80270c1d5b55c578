"""The typed files into which the files of a raw table are converted, one by one, before one commit replaces all.

Each file of the table becomes one file beside it that no commit names yet. A note in a small file says that a file is
converted, so that a repeated run does not convert it again. This is safe because the files of a table never change. The
notes are in a folder for each format, because the rows depend on it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.ipc

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.typed_json import decode_json
from pipelines.fetch.decode_plan import DecodePlan
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.slice_file import SliceFile
from pipelines.fetch.typed_rows import IncompletePlan, TypedRows
from pipelines.layout.columns import ERROR_COLUMN, ColumnConflict, missing_columns, with_columns
from pipelines.layout.layout import NO_DAY, TableLayout
from pipelines.layout.rows import FILE_SCHEMA, cast
from pipelines.ledger.committed_range import NOWHERE, CommittedRange
from pipelines.ledger.schema_ids import NO_SCHEMAS, SchemaIds
from pipelines.ledger.slice_facts import DecodingNeeds, Observations, SliceFacts
from pipelines.rewrites.bad_rows import batches_of, reasons_of
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import FileRefused
from resources.failpoints import failpoint
from resources.settings.topic_formats import TopicFormat
from resources.stores.lake import filesystem, lake_errors, write_file

_NOT_OF_ROWS = {"bad_records", "max_bad_records", "max_bad_share", "partition_by"}
_CODEC = "zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFile:
    """A data file of a raw table: its path, its rows if the log counts them, and the day of its folder."""

    path: str
    rows: int | None
    day: str


def raw_files(snapshot: TableSnapshot) -> list[RawFile]:
    """The data files of a raw table."""
    adds = snapshot.opened.files().to_pylist()
    day = f"partition.{snapshot.layout.partition_column}"
    files = [
        RawFile(path=add["path"], rows=add.get("num_records"), day=NO_DAY if add[day] is None else str(add[day]))
        for add in adds
    ]
    return sorted(files, key=lambda file: file.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedFile:
    """The note about a converted file.

    Args:
        facts: the file. Its `offsets` are the place of the first record that does not decode, or of the first record.
        columns: the columns for fields that it has, as an Arrow IPC message.
        schemas: the ids of the schemas of its values and keys.
        reasons: why records do not decode, with the number of records.
    """

    facts: SliceFacts
    columns: bytes
    schemas: SchemaIds = NO_SCHEMAS
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def values(self) -> pa.Schema:
        """The columns for fields."""
        return pa.ipc.read_schema(pa.py_buffer(self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFile:
    """What SliceFile needs for a file that is written again."""

    table_uri: str
    folder: str
    options: Mapping[str, str]
    layout: TableLayout
    file_name: str = "converted"
    parquet_codec: str = _CODEC


_Note = TypeVar("_Note", bound="NoteOfFile")


class NoteOfFile(Protocol):
    """A note that a file is written again, with the new file."""

    @property
    def facts(self) -> SliceFacts:
        """The new file."""
        ...


class FileNotes(Generic[_Note]):
    """Small files in a folder of the table, which say what files were written again as."""

    def __init__(self, table: LakeTable, folder: str, kind: type[_Note]) -> None:
        self._folder, self._kind, self._uri = folder, kind, table.uri
        self._store = filesystem(table.uri, table.lake.options)

    def read(self, file: RawFile) -> _Note | None:
        """The note about a file; None if there is none, or if its new file is lost."""
        with lake_errors(self._uri):
            if self._store.get_file_info(self._path(file)).type != pafs.FileType.File:
                return None
            with self._store.open_input_stream(self._path(file)) as stream:
                text = stream.read()
            try:
                note = decode_json(text, self._kind)
            except ValueError:  # a loss of power truncated it
                return None
            if any(self._store.get_file_info(new.path).size != new.size for new in note.facts.files):
                return None
        return note

    def write(self, file: RawFile, note: _Note) -> None:
        """Note that a file is written again."""
        with lake_errors(self._uri):
            write_file(self._store, self._path(file), msgspec.json.encode(note))
        failpoint("file converted")

    def _path(self, file: RawFile) -> str:
        return f"{self._folder}{hashlib.sha256(file.path.encode()).hexdigest()[:32]}.json"


def files_of(snapshot: TableSnapshot, columns: pa.Schema) -> Iterator[tuple[RawFile, pads.Dataset]]:
    """The data files of a table with their rows. Columns that a file lacks are null."""
    rows = snapshot.opened.dataset()
    fragments = {fragment.path: fragment for fragment in rows.get_fragments()}
    # Files and tables of older versions lack columns; the dataset gives null for them.
    schema = pa.schema([*rows.schema, *(column for column in columns if column.name not in rows.schema.names)])
    for file in raw_files(snapshot):
        yield file, pads.FileSystemDataset([fragments[file.path]], schema, rows.format, rows.filesystem)


def check_rows(table: LakeTable, file: RawFile, rows: int) -> None:
    """Check that a file has as many rows as the log says.

    Raises:
        FileRefused: it has not.
    """
    if file.rows is not None and rows != file.rows:
        raise FileRefused(
            f"the data file {file.path} holds {rows} rows, but the log says {file.rows}; "
            f"`penstock verify {table.where.topic}` shows more",
            table.where,
        )


class ConvertedFiles:
    """The converted files of one table for one format.

    `folder` is where the notes are.
    """

    def __init__(self, table: LakeTable, format_: TopicFormat, decoding: Decoding, *, dry_run: bool) -> None:
        settings = format_.model_dump_json(exclude=_NOT_OF_ROWS)
        self.folder = f"{STAGING_FOLDER}/convert-{hashlib.sha256(settings.encode()).hexdigest()[:32]}/"
        self.decoding = decoding
        self._table = table
        self._notes = FileNotes(table, self.folder, ConvertedFile)
        self._dry_run = dry_run
        self._done: dict[str, ConvertedFile] = {}

    @property
    def columns(self) -> pa.Schema:
        """The columns for fields of all files."""
        assert self.decoding.plan is not None
        return self.decoding.plan.stored

    def resume(self, files: Sequence[RawFile]) -> None:
        """Find what earlier runs have converted of these files. Files that are lost or do not fit are left out."""
        columns, ids = pa.schema([]), NO_SCHEMAS
        for file in files:
            note = self._notes.read(file)
            try:
                missing = missing_columns(columns, note.values) if note else None
            except ColumnConflict:  # two runs at the same time gave fields different columns
                continue
            if note and missing is not None:
                self._done[file.path] = note
                columns = with_columns(columns, missing)
                ids = ids.with_ids(note.schemas)
        if self._done:
            self.decoding.fix_columns(columns)
            self.decoding.learn(ids.of_values, key_ids=ids.keys)
        if any(self._is_outdated(note) for note in self._done.values()):
            self._done.clear()

    def _is_outdated(self, note: ConvertedFile) -> bool:
        """Whether the file has columns that are not planned, or was decoded with schemas that have changed since."""
        changed = note.schemas.conflict(self.decoding.schema_ids)
        return changed is not None or bool(missing_columns(self.columns, note.values))

    def of(self, snapshot: TableSnapshot) -> Iterator[ConvertedFile]:
        """The converted files of a snapshot; those that no run has written yet are written.

        Raises:
            KafkaIOError: the registry does not answer.
            FileRefused: a file has another number of rows than the log says.
            LakeUnavailable: the store does not answer.
        """
        for file, rows in files_of(snapshot, FILE_SCHEMA):
            if file.path not in self._done:
                converted = self._convert(file, rows)
                check_rows(self._table, file, converted.facts.rows)
                self._done[file.path] = converted
                self.decoding.fix_columns(self.columns)
                if not self._dry_run:
                    self._notes.write(file, converted)
            yield self._done[file.path]

    def _convert(self, file: RawFile, rows: pads.Dataset) -> ConvertedFile:
        """Convert the file; again with a better plan if the plan lacks schemas or fields of its values."""
        while True:
            plan = self.decoding.plan
            assert plan is not None
            typed = _TypedFile(plan)
            target = TargetFile(
                table_uri=self._table.uri,
                folder=f"{plan.layout.partition_column}={file.day}",
                options=self._table.lake.options,
                layout=plan.layout,
            )
            with lake_errors(self._table.uri), SliceFile(target) as output:
                for batch in batches_of(rows, pads.scalar(value=True), FILE_SCHEMA.names):
                    for typed_rows in typed.rows(batch):
                        if not self._dry_run:
                            output.write(typed_rows)
            if not typed.needs:
                return typed.note(output, self.decoding)
            self.decoding.learn_from(typed.needs)


class _TypedFile:
    """The rows of one file, and what the note says about them.

    Attributes:
        needs: what the plan lacks. Without it the file is not complete.
    """

    def __init__(self, plan: DecodePlan) -> None:
        self.needs: list[DecodingNeeds] = []
        self._plan = plan
        self._typed = TypedRows(plan.of_stored_rows)
        self._rows = 0
        self._reasons = Counter[str]()
        self._place: OffsetRange | None = None
        self._has_bad = False

    def rows(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The typed rows of a batch of a raw file; nothing if the plan lacks ids or fields."""
        # The same columns as in a new file: older versions wrote empty lists of headers.
        columns = [cast(column.type, batch.column(column.name)) for column in FILE_SCHEMA]
        raw = pa.RecordBatch.from_arrays(columns, schema=FILE_SCHEMA)
        try:
            typed = self._typed.of_raw_rows(raw)
        except IncompletePlan as missing:
            self.needs.append(missing.needs)
            return
        if batch.num_rows and not self.needs:
            self._count(raw, typed.column(ERROR_COLUMN))
            yield typed

    def _count(self, raw: pa.RecordBatch, errors: pa.Array) -> None:
        self._rows += raw.num_rows
        self._reasons.update(reasons_of(errors))
        has_bad = errors.null_count < len(errors)
        if self._place is None or (has_bad and not self._has_bad):
            row = pc.index(errors.is_valid(), value=True).as_py() if has_bad else 0
            broker, partition, offset = (raw.column(name)[row].as_py() for name in ("broker", "partition", "offset"))
            self._place = OffsetRange(BrokerPartition(broker, partition), offset, offset + 1)
            self._has_bad = has_bad

    def note(self, output: SliceFile, decoding: Decoding) -> ConvertedFile:
        """The note about the file, which is complete."""
        facts = SliceFacts(
            range=CommittedRange(offsets=self._place or NOWHERE, rows=self._rows),
            files=output.files,
            observed=Observations(bad=self._typed.bad, bad_examples=tuple(self._typed.examples)),
        )
        return ConvertedFile(
            facts=facts,
            columns=self._plan.stored.serialize().to_pybytes(),
            schemas=decoding.schema_ids,
            reasons=dict(self._reasons),
        )
