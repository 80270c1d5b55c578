"""Takes rows out of a table as an erasure does, or as a broken one would."""

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_io.model import BrokerPartition
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from pipelines.ledger.incarnations import incarnations
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.table.exact_sets import store_exact, with_shared_sets
from pipelines.table.row_filter import arrow_filter
from pipelines.table.table_store import TableSnapshot


def rows_of(*offsets: int, inner: int | None = None) -> ExactOffsets:
    """The set of these offsets; from the rows with this inner position in 0.7."""
    numbers = np.array(offsets, np.int64)
    return ExactOffsets.of(numbers, None if inner is None else np.full(len(numbers), inner, np.int64))


def with_exact(
    committed: CommittedRange, sets: Mapping[ExactCause, ExactOffsets], store: Callable[[ExactOffsets], StoredSet]
) -> CommittedRange:
    """The range with these sets as its exact causes, and with their numbers in its gaps; empty sets are left out."""
    bare = replace(committed, gaps=committed.visible_gaps, exact={})
    own = {cause: offsets.within(committed.offsets) for cause, offsets in sets.items()}
    return with_shared_sets([(bare, own)], store)[0]


def take_out(
    table: DeltaLakeTable,
    partition: BrokerPartition,
    named: ExactOffsets,
    *,
    gone: Collection[int] | None = None,
    inner: int | None = None,
    cause: ExactCause = ExactCause.ERASED,
) -> None:
    """Take rows out of a table, with an entry whose exact set has the `named` offsets.

    The rows of these offsets go, or of `gone` if a test breaks the rule; in 0.7 only those with the position `inner`.
    """
    snapshot = table.existing()
    assert snapshot is not None
    assert snapshot.entry is not None
    [newest, *_] = incarnations(table.entries(snapshot))
    touched = [part for part in newest.ranges if part.partition == partition and named.within(part.offsets).count]
    offsets = [int(offset) for offset in range(10_000)] if gone is None else list(gone)
    if gone is None:
        numbers = np.array(offsets, np.int64)
        is_named = named.contains(numbers, np.full(len(numbers), inner or 0, np.int64))
        offsets = numbers[is_named].tolist()
    facts = [_without(table, snapshot, part, offsets, inner) for part in touched]
    ranges = []
    for part, fact in zip(touched, facts, strict=True):
        before = table.exact_sets(part)
        sets = {**before, cause: before.get(cause, NO_OFFSETS) | named.within(part.offsets)}
        whole = replace(part, rows=fact.rows, paths=())
        ranges.append(with_exact(whole, sets, lambda offsets: store_exact(table.uri, {}, offsets)))
    entry = LedgerEntry(
        commit=uuid.uuid4().hex,
        run="erasure",
        kind=CommitKind.REPLAY,
        sequence=snapshot.next_sequence,
        table=snapshot.table_id,
        ranges=tuple(ranges),
        state=snapshot.entry.state,
        planned_on=snapshot.digest,
    )
    table.write(snapshot, entry, facts, touched)


def _without(
    table: DeltaLakeTable, snapshot: TableSnapshot, part: CommittedRange, offsets: Collection[int], inner: int | None
) -> SliceFacts:
    layout = snapshot.layout
    rows = snapshot.opened.dataset().to_table(filter=arrow_filter(part, layout))
    mask = pc.is_in(rows.column(layout.name("offset")), pa.array(list(offsets), pa.int64()))
    if inner is not None:
        mask = pc.and_(mask, pc.equal(rows.column(layout.name("inner")), inner))
    kept = rows.filter(pc.invert(mask)).select(layout.file_schema.names).cast(layout.file_schema)
    path = f"_replays/test/{layout.partition_column}=2026-01-31/{uuid.uuid4().hex}.parquet"
    file = Path(table.uri) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(kept, file)
    staged = DataFile(path=path, size=file.stat().st_size, rows=kept.num_rows)
    return SliceFacts(range=replace(part, rows=kept.num_rows, paths=()), files=(staged,) if kept.num_rows else ())
