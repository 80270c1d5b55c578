"""Erase: take rows out of a table for ever, in one commit that shows that nothing else went.

The columns of the condition are read from each data file. A file with hits is written again without these rows, with
the same folder and loading times, and one entry of the log replaces all such files. The entry lands only on the
version that was searched: if another run was first, its new files are searched before the next attempt. Nothing
prints, logs or stores a value of the condition.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kafka_io.errors import LocatedError
from kafka_io.model import BrokerPartition
from pipelines.commit.commit import commit
from pipelines.commit.erasure import EraseChange, HitRows, on_newest
from pipelines.fetch.slice_file import SliceFile
from pipelines.layout.conditions import BoundCondition, Condition
from pipelines.ledger.committed_range import NOWHERE, CommittedRange
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.maintenance.erase_result import ErasedRows, TopicErase
from pipelines.maintenance.hidden_texts import HiddenTexts
from pipelines.rewrites.converted_files import TargetFile
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from pipelines.verify.row_counts import IDENTIFYING
from resources.errors import EraseRefused, TableMissing
from resources.failpoints import failpoint
from resources.stores.lake import lake_errors

if TYPE_CHECKING:  # it imports pandas
    import pyarrow.dataset as pads

_BATCH_ROWS = 65_536
_SEARCHED_ROWS = 8_192
"""The search in a file ends at the first hit, because all of the file is read again then. So its batches are small."""
_MAX_WAITING_BYTES = 64 * 1024 * 1024
"""How many bytes of rows are read without a hit before the file is searched."""
_NO_BROKER = -1
"""Stands for null in columns of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseRequest:
    """What to erase.

    Args:
        table: the topic's table.
        condition: the rows for which it is true are erased.
        also_raw: erase rows too that have a text of the condition where no condition compares it; see HiddenTexts.
        run: the run's id in the ledger.
        name: what the user calls the request; the entry of the ledger has it, and a certificate finds it by it.
        dry_run: only count the rows.
        on_progress: is called with how many of how many files are searched.
    """

    table: LakeTable
    condition: Condition = field(repr=False)
    also_raw: bool = False
    run: str
    name: str = ""
    dry_run: bool = False
    on_progress: Callable[[int, int], None] = lambda _done, _total: None


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileHits:
    """The hits in one data file, and the file with its other rows, if there are some."""

    rows: Mapping[BrokerPartition, HitRows] = field(default_factory=dict)
    count: int = 0
    found_in_bytes: int = 0
    written: tuple[DataFile, ...] = ()


NO_HITS = _FileHits()


def erase(request: EraseRequest) -> TopicErase:
    """Erase the rows. An error is in the result; only interruptions are raised."""
    table = request.table
    result = TopicErase(topic=table.where.topic or "", table=table.uri, request=request.name, dry_run=request.dry_run)
    return ended(table, result, lambda: _Erasure(request).result(result))


def ended(table: LakeTable, result: TopicErase, work: Callable[[], TopicErase]) -> TopicErase:
    """The result of some work; if it fails, `result` with the error."""
    began = monotonic()
    try:
        result = work()
    except LocatedError as error:
        result = replace(result, failure=SliceFailure.of(error, table.where))
    return replace(result, seconds=round(monotonic() - began, 3))


def existing_snapshot(table: LakeTable) -> TableSnapshot:
    """The newest version of a table that has rows.

    Raises:
        TableMissing: it has none.
        LoadError: the table cannot be read.
    """
    snapshot = table.existing()
    if snapshot is None or snapshot.entry is None:
        raise TableMissing("the topic has no rows that could be erased", table.where)
    return snapshot


class _Erasure:
    """One erasure. Files never change, so what was found in one and written in its place is kept over attempts."""

    def __init__(self, request: EraseRequest) -> None:
        self._request = request
        self._files: dict[str, _FileHits] = {}

    def result(self, result: TopicErase) -> TopicErase:
        """The result after the commit, if there was something to erase.

        Raises:
            LoadError: nothing was erased.
        """
        table = self._request.table
        snapshot = existing_snapshot(table)
        self._check(snapshot)
        return on_newest(table, snapshot, partial(self._attempt, result))

    def _attempt(self, result: TopicErase, snapshot: TableSnapshot) -> TopicErase:
        """The same on top of this version.

        Raises:
            TableMoved: another run was first.
        """
        snapshot.check_unchanged(self._request.table.where)
        hits = self._searched(snapshot)
        failpoint("erasure staged")
        result = self._counted(replace(result, version=snapshot.version), hits)
        if self._request.dry_run or not hits:
            return result
        return replace(result, version=self._commit(snapshot, hits))

    def _counted(self, result: TopicErase, hits: Mapping[str, _FileHits]) -> TopicErase:
        """The result with the numbers of the hits."""
        rows = _together(hits.values())
        partitions = [
            ErasedRows(broker=id_.broker, partition=id_.partition, rows=len(own.offsets)) for id_, own in rows.items()
        ]
        return replace(
            result,
            rows=sum(own.count for own in hits.values()),
            found_in_bytes=sum(own.found_in_bytes for own in hits.values()),
            files=len(hits),
            searched=len(self._files),
            partitions=tuple(partitions),
        )

    def _check(self, snapshot: TableSnapshot) -> None:
        """Check that the files can be searched and written again.

        Raises:
            EraseRefused: they cannot.
            TableNotProven: another program has changed rows.
        """
        table = self._request.table
        snapshot.check_unchanged(table.where)
        if snapshot.layout.others:
            raise EraseRefused(
                f"the table {table.uri} has the column {snapshot.layout.others[0]}, which Penstock did not add and "
                "would not keep: drop the column first",
                table.where,
            )
        if damaged := table.damaged(snapshot.opened):
            raise EraseRefused(
                f"the data file {min(damaged)} is lost or damaged, so its rows cannot be searched: replay it first",
                table.where,
            )

    def _searched(self, snapshot: TableSnapshot) -> dict[str, _FileHits]:
        """The files of the snapshot with hits."""
        search = _Search(self._request, snapshot)
        with lake_errors(self._request.table.uri):
            dataset = snapshot.opened.dataset()
            fragments = {fragment.path: fragment for fragment in dataset.get_fragments()}
            for done, (path, fragment) in enumerate(sorted(fragments.items()), 1):
                if path not in self._files:
                    self._files[path] = search.hits(fragment, dataset.schema)
                self._request.on_progress(done, len(fragments))
        return {path: self._files[path] for path in sorted(fragments) if self._files[path].count}

    def _commit(self, snapshot: TableSnapshot, hits: Mapping[str, _FileHits]) -> int:
        assert snapshot.entry is not None
        files = tuple(file for own in hits.values() for file in own.written)
        change = EraseChange(
            state=snapshot.entry.state,
            facts=(SliceFacts(range=CommittedRange(offsets=NOWHERE), files=files),),
            run=self._request.run,
            hits=_together(hits.values()),
            removed=tuple(hits),
            request=self._request.name,
        )
        return commit(self._request.table, snapshot, change).version


class _Search:
    """Searches the files of one version of a table."""

    def __init__(self, request: EraseRequest, snapshot: TableSnapshot) -> None:
        self._request, self._layout = request, snapshot.layout
        headers = snapshot.layout.name("headers")
        with lake_errors(request.table.uri):
            schema = snapshot.opened.schema()
        self._bound: BoundCondition = request.condition.bound(schema, headers)
        self._hidden = HiddenTexts.of(request.condition, snapshot.layout, schema) if request.also_raw else None
        self._expects_hits = False
        raw = self._hidden.columns if self._hidden else ()
        self._columns = [name for name in dict.fromkeys([*self._bound.columns, *raw]) if name in schema.names]

    def hits(self, fragment: "pads.Fragment", schema: pa.Schema) -> _FileHits:
        """The hits of a file. If it has some, and this is no dry run, its other rows are written into a new file."""
        layout, request = self._layout, self._request
        identifying = [layout.name(name) for name in IDENTIFYING]
        names = [*layout.file_schema.names, layout.partition_column] if not request.dry_run else identifying
        columns = [name for name in dict.fromkeys([*names, *self._columns]) if name in schema.names]
        folder = fragment.path.rpartition("/")[0]
        target = TargetFile(
            table_uri=request.table.uri,
            folder=folder,
            options=request.table.lake.options,
            layout=layout,
            file_name="erased",
        )
        parts: list[pa.RecordBatch] = []
        in_bytes = 0
        with SliceFile(target) as file:
            for rows, mask, only_bytes in self._rows_with_hits(fragment, schema, columns):
                in_bytes += int(np.count_nonzero(only_bytes))
                parts.append(rows.select(identifying).filter(pa.array(mask)))
                if not request.dry_run and not mask.all():
                    file.write(_with_all_columns(rows.filter(pa.array(~mask)), layout.file_schema))
        if not parts:
            return NO_HITS
        hits = pa.Table.from_batches(parts)
        return _FileHits(
            rows=_by_partition(hits, identifying), count=hits.num_rows, found_in_bytes=in_bytes, written=file.files
        )

    def _rows_with_hits(
        self, fragment: "pads.Fragment", schema: pa.Schema, columns: Sequence[str]
    ) -> "Iterator[tuple[pa.RecordBatch, np.ndarray, np.ndarray]]":
        """The rows of a file that has hits, with their masks; nothing of another file.

        After a file with hits the next one is not searched first: its rows wait until there is a hit.
        """
        waiting = []
        has_hits = False if self._expects_hits else self._has_hits(fragment, schema)
        if self._expects_hits or has_hits:
            for rows in _batches(fragment, schema, columns, _BATCH_ROWS):
                waiting.append((rows, *self._masks(rows)))
                has_hits = has_hits or bool(waiting[-1][1].any())
                if not has_hits and sum(read.nbytes for read, _, _ in waiting) > _MAX_WAITING_BYTES:
                    has_hits = self._has_hits(fragment, schema)
                    if not has_hits:
                        break
                if has_hits:
                    yield from waiting
                    waiting = []
        self._expects_hits = has_hits

    def _has_hits(self, fragment: "pads.Fragment", schema: pa.Schema) -> bool:
        return any(self._masks(rows)[0].any() for rows in _batches(fragment, schema, self._columns, _SEARCHED_ROWS))

    def _masks(self, rows: pa.RecordBatch) -> "tuple[np.ndarray, np.ndarray]":
        """The rows to erase, and those of them that only the search in bytes finds."""
        mask = self._bound.mask(rows).to_numpy(zero_copy_only=False)
        in_bytes = self._hidden.mask(rows) if self._hidden else np.zeros(rows.num_rows, np.bool_)
        return mask | in_bytes, in_bytes & ~mask


def _batches(
    fragment: "pads.Fragment", schema: pa.Schema, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    yield from fragment.to_batches(
        schema=schema, columns=list(columns), batch_size=batch_rows, batch_readahead=2, fragment_readahead=1
    )


def _with_all_columns(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with all columns of a new file; a file of an older version may lack some."""
    present = dict(zip(rows.schema.names, rows.columns, strict=True))
    arrays = [
        present[column.name].cast(column.type) if column.name in present else pa.nulls(rows.num_rows, column.type)
        for column in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _by_partition(hits: pa.Table, identifying: Sequence[str]) -> dict[BrokerPartition, HitRows]:
    columns = (hits.column(name).cast(pa.int64()) for name in identifying)
    brokers, partitions, *others = (column.fill_null(_NO_BROKER).to_numpy() for column in columns)
    rows = HitRows(*others)
    result = {}
    for broker, partition in set(zip(brokers.tolist(), partitions.tolist(), strict=True)):
        is_own = (brokers == broker) & (partitions == partition)
        id_ = BrokerPartition(None if broker == _NO_BROKER else broker, partition)
        result[id_] = HitRows(*(column[is_own] for column in rows))
    return result


def _together(hits: Iterable[_FileHits]) -> dict[BrokerPartition, HitRows]:
    """The hits of several files by partition."""
    parts: dict[BrokerPartition, list[HitRows]] = defaultdict(list)
    for own in hits:
        for id_, rows in own.rows.items():
            parts[id_].append(rows)
    return {id_: HitRows(*map(np.concatenate, zip(*rows, strict=True))) for id_, rows in sorted(parts.items())}
