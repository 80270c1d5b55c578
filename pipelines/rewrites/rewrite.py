"""Rewrite: store all rows of a table again by the rules that the settings have now, without a broker.

The files are written again one by one, while readers and loads use the old ones. Each becomes one file beside it that
no commit names yet, with the same rows in the same order, and a note in a small file says so. The notes are in a folder
for each pair of old and new rules. Then one entry of the log replaces all files. It lands only if the table still has
exactly these files: if a load was first, its files are written again too, and the entry is tried again. A killed run
leaves the old table, or the new one. A repeated run finds the files that are written already.

Offsets, loading times and the number of rows do not change. `penstock clean` deletes the old files later.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Self

import msgspec
import pyarrow as pa
import pyarrow.dataset as pads

from kafka_io.errors import LocatedError
from pipelines.commit.commit import Change, commit
from pipelines.fetch.decode_plan import check_format
from pipelines.fetch.slice_file import SliceFile
from pipelines.layout.layout import TableLayout
from pipelines.ledger.committed_range import NOWHERE, CommittedRange
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_rules import TableRules
from pipelines.rewrites.bad_rows import batches_of
from pipelines.rewrites.convert import FilesChanged
from pipelines.rewrites.converted_files import (
    FileNotes,
    RawFile,
    TargetFile,
    check_rows,
    files_of,
    raw_files,
)
from pipelines.rewrites.rewrite_result import TopicRewrite
from pipelines.rewrites.staging import STAGING_FOLDER, remove_staged
from pipelines.rules.row_rules import RowRules
from pipelines.rules.stored_rows import StoredRows, rules_after_rewrite
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import file_paths
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import RewriteRefused, TableMissing
from resources.failpoints import failpoint
from resources.settings.topic_formats import TopicFormat
from resources.stores.lake import lake_errors

_MAX_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenFile:
    """The note about a file that is written again. Its name says of which."""

    facts: SliceFacts


class RewrittenFiles:
    """The files of one table, written again by new rules.

    `folder` is where the notes are.
    """

    def __init__(self, table: LakeTable, rows: StoredRows, before: TableRules, after: TableRules) -> None:
        both = msgspec.json.encode([before.as_dict(), after.as_dict()])
        self.folder = f"{STAGING_FOLDER}/rewrite-{hashlib.sha256(both).hexdigest()[:32]}/"
        self._table = table
        self._rows = rows
        self._notes = FileNotes(table, self.folder, RewrittenFile)

    def of(self, snapshot: TableSnapshot) -> Iterator[SliceFacts]:
        """The new files of a snapshot; those that no run has written yet are written.

        Raises:
            FileRefused: a file has another number of rows than the log says.
            LakeUnavailable: the store does not answer.
        """
        layout = snapshot.layout
        for file, rows in files_of(snapshot, layout.file_schema):
            note = self._notes.read(file)
            if note is None:
                note = RewrittenFile(facts=self._written(file, rows, layout))
                check_rows(self._table, file, note.facts.rows)
                self._notes.write(file, note)
            yield note.facts

    def _written(self, file: RawFile, rows: pads.Dataset, layout: TableLayout) -> SliceFacts:
        target = TargetFile(
            table_uri=self._table.uri,
            folder=f"{layout.partition_column}={file.day}",
            options=self._table.lake.options,
            layout=layout,
            file_name="rewritten",
        )
        schema = layout.file_schema
        with lake_errors(self._table.uri), SliceFile(target) as output:
            for batch in batches_of(rows, pads.scalar(value=True), schema.names):
                if batch.num_rows:
                    columns = [batch.column(field.name).cast(field.type) for field in schema]
                    output.write(self._rows.by_new_rules(pa.RecordBatch.from_arrays(columns, schema=schema)))
        return SliceFacts(range=CommittedRange(offsets=NOWHERE, rows=output.rows), files=output.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRequest:
    """What to store again, and how.

    Args:
        table: the topic's table.
        format: the present format of the topic, with its rules.
        run: the run's id in the ledger.
        dry_run: only say what would change.
        on_progress: is called with how many of how many rows are written.
    """

    table: LakeTable
    format: TopicFormat
    run: str
    dry_run: bool = False
    on_progress: Callable[[int, int], None] = lambda _done, _total: None


def rewrite(request: RewriteRequest) -> TopicRewrite:
    """Store all rows again by the rules of the settings. An error is in the result; only interruptions are raised."""
    began, where = monotonic(), request.table.where
    result = TopicRewrite(topic=where.topic or "", table=request.table.uri, dry_run=request.dry_run)
    try:
        result = _rewritten(request, result)
    except LocatedError as error:
        result = replace(result, failure=SliceFailure.of(error, where))
    return replace(result, seconds=round(monotonic() - began, 3))


def _rewritten(request: RewriteRequest, result: TopicRewrite) -> TopicRewrite:
    snapshot = request.table.existing()
    for tries_left in reversed(range(_MAX_TRIES)):
        if snapshot is None or snapshot.entry is None:
            raise TableMissing("the topic has no rows to store again: load it first", request.table.where)
        _check_rewritable(request, snapshot)
        before = snapshot.entry.state.rules
        rules = RowRules.of(request.format).checked()
        after = rules_after_rewrite(before, rules.recorded())
        changes = tuple(before.differences(after))
        result = replace(result, version=snapshot.version, changes=changes)
        if not changes:
            return result
        rows = StoredRows(snapshot.layout, before, rules)
        if request.dry_run:
            return replace(result, rows=snapshot.opened.count(), files=len(raw_files(snapshot)))
        try:
            return _committed(request, snapshot, rows, (before, after), result)
        except FilesChanged:
            if not tries_left:
                raise
            snapshot = request.table.newer(snapshot)
    raise AssertionError("the last try returns or raises")


def _check_rewritable(request: RewriteRequest, snapshot: TableSnapshot) -> None:
    """Check that the table has only columns that Penstock writes.

    Raises:
        RewriteRefused: it has others.
    """
    snapshot.check_unchanged(request.table.where)
    check_format(request.format, snapshot, request.table.uri)
    others = snapshot.other_columns()
    if others:
        raise RewriteRefused(
            f"the table {request.table.uri} has the column {others[0].name}, which Penstock did not add: copy the "
            "column elsewhere, and `penstock rewind` to a version without it",
            request.table.where,
        )


def _committed(
    request: RewriteRequest,
    snapshot: TableSnapshot,
    rows: StoredRows,
    rules: tuple[TableRules, TableRules],
    result: TopicRewrite,
) -> TopicRewrite:
    """Write all files again, and commit them.

    Raises:
        FilesChanged: the table has other files, or other rules, than the snapshot now.
    """
    assert snapshot.entry is not None
    failpoint("rewrite planned")
    files = RewrittenFiles(request.table, rows, *rules)
    facts, total = list[SliceFacts](), snapshot.opened.count()
    for file in files.of(snapshot):
        facts.append(file)
        request.on_progress(sum(done.rows for done in facts), total)
    failpoint("table rewritten")
    change = RewriteChange(
        state=snapshot.entry.state,
        facts=tuple(facts),
        run=request.run,
        sources=frozenset(file.path for file in raw_files(snapshot)),
        before=rules[0],
        after=rules[1],
    )
    version = commit(request.table, snapshot, change).version
    remove_staged(request.table, files.folder)
    return replace(result, version=version, files=len(facts), rows=sum(done.rows for done in facts))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteChange(Change):
    """Replaces all files of a table by others with the same rows, stored by other rules. It changes no offsets.

    Args:
        sources: the paths of the files that were written again.
        before: the rules of the table.
        after: its rules after the change.
    """

    kind: CommitKind = CommitKind.REWRITE
    sources: frozenset[str]
    before: TableRules
    after: TableRules

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry. It replaces all files, and so no range.

        Raises:
            FilesChanged: the snapshot has other files or other rules.
        """
        self._check_same(snapshot)
        table.check(self.facts)
        return replace(entry, state=replace(entry.state, rules=self.after)), ()

    def rebased(self, newest: TableSnapshot) -> Self:
        """The same change, if the other commits have not changed the files.

        Raises:
            FilesChanged: they have.
        """
        self._check_same(newest)
        assert newest.entry is not None
        return replace(self, state=newest.entry.state)

    def _check_same(self, snapshot: TableSnapshot) -> None:
        entry = snapshot.entry
        if entry is None or entry.state.rules != self.before or file_paths(snapshot.opened) != self.sources:
            raise FilesChanged("other runs change the files of the table; run again", self.state.topic.where)
