"""Makes the certificate of an erasure from the table, the values of the request, and the notes in the table's folder.

Nothing is changed. Values are given again, because Penstock stores none. Without them the search knows offsets only.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.certificates.byte_scan import FolderScan, ScannedFolder
from pipelines.certificates.certificate import (
    Certificate,
    CertifiedConsumer,
    CertifiedErasure,
    CertifiedTable,
    RemovedFile,
)
from pipelines.certificates.elsewhere import copies_elsewhere
from pipelines.certificates.erased_rows import ErasedByCommit, ErasedOffsets
from pipelines.certificates.searched_texts import SearchedTexts
from pipelines.increments.delta_output import DeltaOutput
from pipelines.layout.conditions import Condition
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance.clean import data_files
from pipelines.maintenance.erased_files import copies_beside, outdated_files, outdated_state_files
from pipelines.reports.table_notes import DeletedFiles, SeenConsumer, TableNotes
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import CONSUMER
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import file_paths
from pipelines.table.table_commit import TableCommit
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.topic_tables import other_tables
from pipelines.verify.verify import proof_of, verify
from resources.errors import EraseRefused, LoadError, TableMissing
from resources.table_names import topic_of

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster


def _clean_up(note: SeenConsumer, topic: str) -> str:
    """How the owner of an output removes the bytes of removed rows."""
    place, _, name = note.output.rpartition(" ")
    path = place.replace("'", "''")
    by_kind = {
        DeltaOutput.__name__: f"`penstock erase {topic} --finish --outputs` deletes its old files and their bounds in "
        "its log, and then its older versions cannot be read",
        "DuckDBOutput": f"free pages keep removed rows until `ATTACH '{path}' AS old (READ_ONLY); ATTACH '{path}.new' "
        "AS new; COPY FROM DATABASE old TO new` has copied the others, and the new file has replaced the old one",
        "PostgresOutput": f'free pages keep removed rows until `VACUUM FULL "{place}"."{name}"` removes them',
    }
    return by_kind.get(note.kind, "ask its owner")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """The request for a certificate.

    Args:
        table: the topic's table.
        request: the request, as its user calls it.
        condition: the rows of the request, with their values; None if they are not given.
        erase_days: after how many days housekeeping deletes files with erased rows.
        cluster: the cluster of the topic; None if it does not answer.
    """

    table: LakeTable
    request: str
    condition: Condition | None = field(default=None, repr=False)
    erase_days: float
    cluster: "Cluster | None" = None


def certify(request: CertificateRequest) -> Certificate:
    """Make the certificate.

    Raises:
        EraseRefused: the table has no erasure for the request.
        ConditionInvalid: the condition does not fit the columns of the table.
        LoadError: the table cannot be read.
    """
    table = request.table
    snapshot = table.newest()
    if snapshot is None:
        raise TableMissing(f"there is no table {table.uri}", table.where)
    commits = _commits_of(request, snapshot)
    last = commits[-1]
    erased = ErasedOffsets.of(table, snapshot.version, commits)
    scan = FolderScan(texts=_texts(request, snapshot), condition=request.condition, erased=erased)
    topic = table.where.topic or ""
    return Certificate(
        topic=topic,
        table=table.uri,
        further_tables=tuple(str(other.where.topic) for other in other_tables(table)),
        request=request.request,
        made_at=datetime.now(UTC),
        erasures=tuple(map(_erasure, commits, erased.commits)),
        deadline=last.time + timedelta(days=request.erase_days),
        proven=proof_of(table, verify).proven,
        searched=scan.texts.count if request.condition else None,
        left_out=scan.texts.left_out,
        tables=tuple(_tables(table, snapshot, last, scan)),
        consumers=tuple(_consumers(table, last.version, scan)),
        digests=erased.last_messages(table, snapshot.version),
        elsewhere=tuple(
            copies_elsewhere(topic_of(topic), erased.last_offsets(), table.uri, table.lake.options, request.cluster)
        ),
    )


def _commits_of(request: CertificateRequest, snapshot: TableSnapshot) -> Sequence[TableCommit]:
    """The erasures of the request, the oldest first. One without a name has the id of its run."""
    commits = [
        commit
        for commit in request.table.commits(snapshot.version)
        if commit.entry is not None
        and commit.entry.kind is CommitKind.ERASE
        and request.request == (commit.entry.erasure.request or commit.entry.run)
    ]
    if not commits:
        topic = request.table.where.topic
        raise EraseRefused(
            f"the table has no erasure with the request {request.request}: `penstock history {topic}` shows those that "
            "it has, and an erasure that finds no rows makes no commit",
            request.table.where,
        )
    return commits[::-1]


def _texts(request: CertificateRequest, snapshot: TableSnapshot) -> SearchedTexts:
    if request.condition is None:
        return SearchedTexts()
    request.condition.bound(snapshot.opened.schema(), snapshot.layout.name("headers"))
    return SearchedTexts.of(request.condition.texts())


def _erasure(commit: TableCommit, erased: ErasedByCommit) -> CertifiedErasure:
    assert commit.entry is not None
    partitions = tuple(erased.counts())
    return CertifiedErasure(
        version=commit.version,
        before=commit.version - 1,
        time=commit.time,
        run=commit.entry.run,
        rows=sum(own.rows for own in partitions),
        partitions=partitions,
    )


def _tables(
    table: LakeTable, snapshot: TableSnapshot, erasure: TableCommit, scan: FolderScan
) -> Iterator[CertifiedTable]:
    """Search the folder of the topic's table, and that of its state table."""
    outdated = outdated_files(table, snapshot, erasure.version)
    personal = snapshot.layout.personal
    yield CertifiedTable(
        table=table.uri,
        topic_version=snapshot.version,
        files=tuple(_removed(table, outdated)),
        beside=tuple(sorted(info.path for info in copies_beside(table, erasure.time))),
        log_objects=table.objects_with_bounds(personal, deleted=outdated),
        has_values_in_names=_is_in_names(scan.texts, snapshot.opened.schema()),
        scan=scan.run(table, proven=file_paths(snapshot.opened)),
    )
    output = state_output(table)
    writer = output.begin(CONSUMER, f"{table.where.cluster}/{table.where.topic}")
    opened = writer.opened
    if opened is not None:
        outdated = outdated_state_files(output.table, opened)
        yield CertifiedTable(
            table=output.uri,
            topic_version=writer.progress.version,
            has_followed=writer.progress.version >= erasure.version,
            files=tuple(_removed(output.table, outdated)),
            log_objects=output.table.objects_with_bounds(personal, deleted=outdated),
            has_values_in_names=_is_in_names(scan.texts, opened.schema()),
            scan=scan.run(output.table),
        )


def _is_in_names(texts: SearchedTexts, schema: pa.Schema) -> bool:
    """Whether a column, or a field inside of one, has a name with one of the texts."""
    return texts.in_bounds(str(schema.remove_metadata()).encode())


def _removed(table: LakeTable, paths: Collection[str]) -> Iterator[RemovedFile]:
    there = {info.path for info in data_files(table)}
    times = _times(TableNotes(table.uri, table.lake.options, DeletedFiles).read())
    for path in sorted(paths):
        is_there = path in there
        yield RemovedFile(path=path, is_there=is_there, deleted_at=None if is_there else times.get(path))


def _times(notes: Iterable[DeletedFiles]) -> Mapping[str, datetime]:
    """The times at which files were deleted, by path."""
    return {path: note.time for note in notes for path in note.paths}


def _consumers(table: LakeTable, version: int, scan: FolderScan) -> Iterator[CertifiedConsumer]:
    notes = TableNotes(table.uri, table.lake.options, SeenConsumer).read()
    for note in sorted(notes, key=lambda note: (note.consumer, note.output)):
        yield CertifiedConsumer(
            consumer=note.consumer,
            output=note.output,
            version=note.version,
            seen_at=note.time,
            has_followed=note.version >= version,
            clean_up=_clean_up(note, table.where.topic or ""),
            scan=_scanned_output(table, note, scan.texts),
        )


def _scanned_output(table: LakeTable, note: SeenConsumer, texts: SearchedTexts) -> ScannedFolder | None:
    """Search a Delta output; None for other outputs, and if the options of the topic's store do not open it."""
    if note.kind != DeltaOutput.__name__ or not texts.count:
        return None
    output = DeltaOutput(uri=note.output, options=table.lake.options)
    try:
        return FolderScan(texts=texts).run(output.table)
    except LoadError:
        return None
