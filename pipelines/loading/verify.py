"""Verify: check, from the table alone, that the table holds what its ledger says.

For every partition: the committed ranges follow each other without a hole up to the cursor; every file is there; every
range has as many rows of its commit as the commit counted, and none twice; no row is outside of all ranges. From 0.8
on, where offsets count records, the rows and the gaps of a range add up to its size.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.incarnations import incarnations
from pipelines.loading.ledger import Coverage, TopicIdentity, totals
from pipelines.loading.outcome import printed_fields
from pipelines.loading.table import LakeTable, mismatched_cursors, unreadable_features
from pipelines.loading.table_log import TableSnapshot
from pipelines.loading.work import CommittedRange, SliceFailure
from resources.errors import LakeUnavailable, LoadError
from resources.lake import Lake, filesystem, lake_errors

_MAX_PROBLEMS = 100
# Offset and, inside one compressed message of 0.7, `inner` identify a row of a partition. A row belongs to the range
# that was committed with it, which has the same loading time: a recreated topic has the same offsets again.
_COUNT = """
    WITH distinct_rows AS (
        SELECT broker, partition, "offset" AS start_offset, "inner" AS inner_index, epoch_us(loaded_at) AS loaded_us,
            count(*) AS copies
        FROM files GROUP BY ALL
    )
    SELECT ranges.number, count(*) AS row_count, sum(copies) - count(*) AS further_copies
    FROM distinct_rows AS d LEFT JOIN ranges
        ON ranges.broker IS NOT DISTINCT FROM d.broker AND ranges.partition = d.partition
        AND ranges.loaded_us = d.loaded_us
        AND d.start_offset >= ranges.start AND d.start_offset < ranges.stop
    GROUP BY ranges.number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProof:
    """The result of `verify` for one partition.

    If a topic was recreated and loaded into the same table, each incarnation has its partitions.

    Args:
        incarnation: the incarnation of the topic.
        offsets: what the ledger says is committed.
        rows: the number of different rows.
        gaps: the number of offsets without a row, by cause.
        missing: how many rows fewer there are than the commits counted.
        duplicates: the number of rows that are there again.
    """

    incarnation: str
    offsets: OffsetRange
    rows: int
    gaps: dict[str, int]
    missing: int
    duplicates: int

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock verify --json`."""
        return {"incarnation": self.incarnation, **printed_fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The result of `verify` for a topic's table. The table is proven if there is no problem."""

    topic: str
    table: str
    problems: tuple[str, ...] = ()
    partitions: tuple[PartitionProof, ...] = ()
    failure: SliceFailure | None = None
    """The error that ended the check; it is also the problem."""

    @property
    def proven(self) -> bool:
        """Whether the table holds what its ledger says, and each row once."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock verify --json`."""
        return {
            "topic": self.topic,
            "table": self.table,
            "proven": self.proven,
            "problems": list(self.problems),
            "errors": [self.failure.as_dict()] if self.failure else [],
            "partitions": [partition.as_dict() for partition in self.partitions],
        }


class _CountedRange(NamedTuple):
    """A committed range of an incarnation, and what the files hold of it: different rows, and copies of them."""

    topic: TopicIdentity
    committed: CommittedRange
    rows: int
    copies: int


def proof_of(table: LakeTable, check: Callable[[LakeTable], Proof]) -> Proof:
    """The result of `check`, such as `verify`. An error becomes its problem, so that other tables are still checked."""
    try:
        return check(table)
    except Exception as error:  # noqa: BLE001 - whatever the reason is, this table is not proven
        failure = SliceFailure.of(error, table.where, traceback.format_exc())
        problem = f"the check did not end: {failure}"
        return Proof(topic=table.where.topic or "", table=table.uri, problems=(problem,), failure=failure)


def verify(table: LakeTable) -> Proof:
    """Check the table. This reads the columns that identify rows, and asks no broker.

    Raises:
        LakeUnavailable: the store does not answer.
    """
    topic = table.where.topic or ""
    handle = table.lake.open(table.uri)
    if handle is None:
        return Proof(topic=topic, table=table.uri, problems=(f"there is no table {table.uri}",))
    features = unreadable_features(handle)
    if features:
        return Proof(topic=topic, table=table.uri, problems=(features,))
    snapshot = TableSnapshot(version=handle.version(), entry=None, handle=handle)
    entries = list(table.entries(snapshot))
    by_incarnation = incarnations(entries)
    owned = [(incarnation.topic, committed) for incarnation in by_incarnation for committed in incarnation.ranges]
    ranges = [committed for _, committed in owned]
    problems = [
        problem
        for incarnation in by_incarnation
        for problem in (*incarnation.problems, *_broken_chains(incarnation.ranges))
    ]
    problems += _why_not_loadable(table)
    if entries:
        _, newest = entries[0]
        problems += mismatched_cursors(handle, newest)
        problems += _short_of_cursor(by_incarnation[0].ranges, newest.covered)
    complete, damaged = _files(table.lake, handle)
    for path in damaged:
        contents = ", ".join(str(committed) for committed in ranges if committed.path == path) or "compacted rows"
        problems.append(
            f"the data file {path} is missing or truncated: it held {contents}; `penstock replay {topic} "
            "--from earliest --to latest` fetches the rows again"
        )
    counts = _count(table, ranges, complete)
    outside = sum(counts.pop(None, ()))
    if outside:
        problems.append(f"{outside} rows are outside of every committed range")
    counted = [
        _CountedRange(*topic_and_range, *counts.get(number, (0, 0))) for number, topic_and_range in enumerate(owned)
    ]
    problems += _miscounts(counted)
    return Proof(
        topic=topic,
        table=table.uri,
        problems=tuple(dict.fromkeys(problems[:_MAX_PROBLEMS])),
        partitions=tuple(_proofs(counted)),
    )


def _why_not_loadable(table: LakeTable) -> Iterator[str]:
    """The reason why a load would refuse to continue from the table, if there is one."""
    try:
        table.existing()
    except LakeUnavailable:
        raise
    except LoadError as error:
        yield error.reason


def _short_of_cursor(ranges: Iterable[CommittedRange], covered: Coverage) -> Iterator[str]:
    """Problems of partitions whose ranges do not lead from their start to their cursor."""
    extents: dict[BrokerPartition, tuple[int, int]] = {}
    for committed in ranges:
        offsets = committed.offsets
        start, stop = extents.get(committed.partition, (offsets.start, offsets.stop))
        extents[committed.partition] = (min(start, offsets.start), max(stop, offsets.stop))
    for partition, (start, cursor) in sorted(covered.items()):
        extent = extents.get(partition)
        if (extent or (start, start)) != (start, cursor):
            actual = f"[{extent[0]}, {extent[1]})" if extent else "nothing"
            yield f"partition {partition}: the ledger covers [{start}, {cursor}), but its ranges cover {actual}"


def _broken_chains(ranges: Iterable[CommittedRange]) -> Iterable[str]:
    """Problems of ranges that do not start where the one before them ends."""
    ends: dict[BrokerPartition, int] = {}
    for offsets in sorted(committed.offsets for committed in ranges):
        end = ends.get(offsets.partition, offsets.start)
        if end != offsets.start or offsets.size < 0:
            yield f"{offsets} does not follow the range before it, which ended at {end}"
        ends[offsets.partition] = offsets.stop


def _files(lake: Lake, table: DeltaTable) -> tuple[list[str], list[str]]:
    """The table's files that are complete, and those that are missing or of another size."""
    with lake_errors(table.table_uri):
        adds = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
        sizes = {str(add["path"]): int(add["size_bytes"]) for add in adds}
        infos = filesystem(table.table_uri, lake.options).get_file_info(list(sizes))
    complete = {info.path for info in infos if info.type == pafs.FileType.File and info.size == sizes[info.path]}
    return [path for path in sizes if path in complete], [path for path in sizes if path not in complete]


def _count(table: LakeTable, ranges: Sequence[CommittedRange], paths: list[str]) -> dict[int | None, tuple[int, int]]:
    """Different rows and further copies in the complete files, by the number of their range; None is outside of all.

    DuckDB moves data to disk if memory is short.
    """
    if not paths:
        return {}
    columns: dict[str, list[int | None]] = {
        "number": [*range(len(ranges))],
        "broker": [committed.partition.broker for committed in ranges],
        "partition": [committed.partition.partition for committed in ranges],
        "start": [committed.offsets.start for committed in ranges],
        "stop": [committed.offsets.stop for committed in ranges],
        "loaded_us": [committed.loaded_at_us for committed in ranges],
    }
    files = pads.dataset(paths, filesystem=filesystem(table.uri, table.lake.options), format="parquet")
    with lake_errors(table.uri), duckdb.connect() as database:
        database.register("files", files)
        database.register("ranges", pa.table(columns, schema=pa.schema([(name, pa.int64()) for name in columns])))
        rows = database.execute(_COUNT).fetchall()
    return {number: (int(distinct), int(copies)) for number, distinct, copies in rows}


def _proofs(counted: Iterable[_CountedRange]) -> Iterator[PartitionProof]:
    """The proofs of the partitions; `counted` are in order of incarnation, partition and offset."""
    groups = groupby(counted, key=lambda counted_range: (counted_range.topic, counted_range.committed.partition))
    for (topic, partition), group in groups:
        ranges = list(group)
        committed_ranges = [committed for _, committed, _, _ in ranges]
        yield PartitionProof(
            incarnation=topic.incarnation,
            offsets=OffsetRange(
                partition,
                min(committed.offsets.start for committed in committed_ranges),
                max(committed.offsets.stop for committed in committed_ranges),
            ),
            rows=sum(rows for _, _, rows, _ in ranges),
            gaps=totals(committed_ranges)["gaps"],
            missing=sum(max(0, committed.rows - rows) for _, committed, rows, _ in ranges),
            duplicates=sum(copies for _, _, _, copies in ranges),
        )


def _miscounts(counted: Iterable[_CountedRange]) -> Iterator[str]:
    for _, committed, rows, copies in counted:
        gaps = sum(committed.gaps.values())
        if committed.partition.broker is None and committed.rows + gaps != committed.offsets.size:
            yield f"{committed}: its {committed.rows} rows and {gaps} offsets in gaps do not add up to its size"
        if rows != committed.rows:
            yield f"{committed} holds {rows} rows, but its commit counted {committed.rows}"
        if copies:
            yield f"{committed} holds {copies} rows more than once"
