"""Convert: make a raw table typed from its own rows, without a broker.

The files are converted one by one, while readers and loads use the raw ones. Then one entry of the log replaces all
files and the columns of the table. It lands only if the table still has exactly the files that were converted: if a
load was first, its files are converted too, and the entry is tried again. A killed run leaves the raw table, or the
typed one. A repeated run finds the files that are converted already.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from pipelines.commit.bad_records import check_bad_records
from pipelines.commit.commit import Change, columns_to_add, commit
from pipelines.fetch.decoding import Decoding
from pipelines.ledger.committed_range import NOWHERE, CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_rules import KEEP
from pipelines.rewrites.converted_files import ConvertedFile, ConvertedFiles, raw_files
from pipelines.rewrites.redecode import Redecode, RedecodeRequest
from pipelines.rewrites.redecode_result import DecodedAgain, TopicRedecode
from pipelines.rewrites.staging import remove_staged
from pipelines.table.open_table import file_paths
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, RedecodeRefused
from resources.failpoints import failpoint

_MAX_TRIES = 20


class FilesChanged(CommitRefused):
    """The table has other files than those that were converted."""


def convert_table(request: RedecodeRequest) -> TopicRedecode:
    """Make a raw table typed. An error is in the result; only interruptions are raised."""
    return Redecode(request).result(_convert)


def _convert(run: Redecode) -> None:
    request, snapshot = run.request, run.snapshot()
    if snapshot.entry and snapshot.entry.kind is CommitKind.CONVERT:
        return  # a run that was killed after its commit is repeated
    _check_convertible(request, snapshot)
    decoding = Decoding(request.format, replace(snapshot, layout=snapshot.layout.converted()), request.open_registry)
    files = ConvertedFiles(request.table, request.format, decoding, dry_run=request.dry_run)
    files.resume(raw_files(snapshot))
    failpoint("conversion planned")
    for tries_left in reversed(range(_MAX_TRIES)):
        converted = _converted(run, files, snapshot)
        failpoint("table converted")
        try:
            version = snapshot.version if request.dry_run else _commit(request, snapshot, files, converted)
            break
        except FilesChanged:
            if not tries_left:
                raise
            snapshot = request.table.newer(snapshot)
            _check_convertible(request, snapshot)
    for file in converted:
        counts = DecodedAgain(
            decoded=file.facts.rows - file.facts.observed.bad, bad=Counter(file.reasons), changed=True
        )
        run.total.add(counts)
    run.note(decoding, replace(snapshot, layout=snapshot.layout.converted()), version)
    if not request.dry_run:
        remove_staged(request.table, files.folder)


def _check_convertible(request: RedecodeRequest, snapshot: TableSnapshot) -> None:
    """Check that the table is raw and has nothing that a typed table would lose.

    Raises:
        RedecodeRefused: it is not.
    """
    where, uri = request.table.where, request.table.uri
    if snapshot.layout.is_typed:
        raise RedecodeRefused(
            f"the table {uri} is typed already, and keeps the bytes only of records that did not decode: `penstock "
            f"redecode {where.topic}` decodes these again; to load the topic in another format, move the table away",
            where,
        )
    if not request.format.is_typed:
        raise RedecodeRefused(
            'the format of the topic is "raw", so its table stays raw; set another format in [topics.NAME] first', where
        )
    if request.format.key_encoding and request.format.load.key != KEEP:
        raise RedecodeRefused(
            f"the table {uri} does not have the keys as they were, so it can have no columns for their fields: remove "
            "`key_format`",
            where,
        )
    others = sorted(set(snapshot.opened.schema().names) - set(snapshot.layout.table_schema.names))
    if others:
        raise RedecodeRefused(
            f"the table {uri} has the column {others[0]}, which Penstock did not add, and a typed table may need its "
            "name; copy the column elsewhere, and `penstock rewind` to a version without it",
            where,
        )


def _converted(run: Redecode, files: ConvertedFiles, snapshot: TableSnapshot) -> list[ConvertedFile]:
    """The converted files of the snapshot. It ends at a file that shows too many records that do not decode.

    Raises:
        BadRecords: there are more of them than the settings of the topic allow.
    """
    request, total = run.request, snapshot.opened.count()
    converted: list[ConvertedFile] = []
    rows = 0
    for file in files.of(snapshot):
        converted.append(file)
        rows += file.facts.rows
        not_converted = SliceFacts(range=CommittedRange(offsets=NOWHERE, rows=max(0, total - rows)))
        check_bad_records(request.format, [*(done.facts for done in converted), not_converted], request.table.where)
        request.on_progress(rows, total)
    return converted


def _commit(
    request: RedecodeRequest, snapshot: TableSnapshot, files: ConvertedFiles, converted: Sequence[ConvertedFile]
) -> int:
    """Replace all files of the table by the converted ones; returns the new version.

    Raises:
        FilesChanged: the table has other files than the snapshot now.
    """
    assert snapshot.entry is not None
    change = ConvertChange(
        state=snapshot.entry.state,
        facts=tuple(file.facts for file in converted),
        run=request.run,
        columns=files.columns,
        schemas=files.decoding.schema_ids,
        rules=files.decoding.rules.recorded(),
        sources=frozenset(file.path for file in raw_files(snapshot)),
    )
    return commit(request.table, snapshot, change).version


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertChange(Change):
    """Replaces all files of a raw table by typed ones with the same rows. It changes no offsets.

    Args:
        columns: the columns for fields that the files have.
        sources: the paths of the files that were converted.
    """

    kind: CommitKind = CommitKind.CONVERT
    columns: pa.Schema
    sources: frozenset[str]

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry. It replaces all files, and so no range.

        Raises:
            FilesChanged: the snapshot has other files.
        """
        if file_paths(snapshot.opened) != self.sources:
            raise self._files_changed()
        table.check(self.facts)
        columns = columns_to_add(self.state, replace(snapshot, layout=snapshot.layout.converted()), self.columns)
        return replace(entry, columns=columns), ()

    def rebased(self, newest: TableSnapshot) -> Self:
        """The same change, if the other commits have not changed the files.

        Raises:
            FilesChanged: they have.
        """
        if newest.entry is None or file_paths(newest.opened) != self.sources:
            raise self._files_changed()
        return replace(self, state=newest.entry.state)

    def _files_changed(self) -> FilesChanged:
        return FilesChanged("other runs change the files of the table; run again", self.state.topic.where)
