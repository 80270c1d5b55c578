"""Verify: check, from the table alone, that the table holds what its ledger says.

For every partition: the committed ranges follow each other without a hole up to the cursor; every file is there; every
range has as many rows of its commit as the commit counted, and none twice; no row is outside of all ranges. From 0.8
on, where offsets count records, the rows and the gaps of a range add up to its size.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.incarnations import IncarnationRanges, incarnations
from pipelines.loading.ledger import CommittedRange, Coverage
from pipelines.loading.outcome import printed_range
from pipelines.loading.table import LakeTable, mismatched_cursors
from pipelines.loading.table_log import TableSnapshot
from resources.errors import LakeUnavailable, LoadError
from resources.lake import Lake, filesystem, lake_errors

_MAX_PROBLEMS = 100
# Offset and, inside one compressed message of 0.7, `inner` identify a row of a partition. A row belongs to the range
# that was committed with it, which has the same loading time: a recreated topic has the same offsets again.
_COUNT = """
    WITH found AS (
        SELECT broker, partition, "offset" AS start_offset, "inner" AS inner_index, epoch_us(loaded_at) AS loaded_us,
            count(*) AS copies
        FROM held GROUP BY ALL
    )
    SELECT ranges.number, count(*) AS distinct_rows, sum(copies) AS all_rows
    FROM found LEFT JOIN ranges
        ON ranges.broker IS NOT DISTINCT FROM found.broker AND ranges.partition = found.partition
        AND ranges.loaded_us = found.loaded_us
        AND found.start_offset >= ranges.start AND found.start_offset < ranges.stop
    GROUP BY ranges.number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProof:
    """What `verify` found in one partition.

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
        return {
            "incarnation": self.incarnation,
            **printed_range(self.offsets),
            "rows": self.rows,
            "gaps": self.gaps,
            "missing": self.missing,
            "duplicates": self.duplicates,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What `verify` found in a topic's table. The table is proven if there is no problem."""

    topic: str
    table: str
    problems: tuple[str, ...] = ()
    partitions: tuple[PartitionProof, ...] = ()

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
            "partitions": [partition.as_dict() for partition in self.partitions],
        }


@dataclass(slots=True)
class _Counts:
    """What is in the files: different rows and further copies by the number of their range, and rows outside of all."""

    rows: Counter[int] = field(default_factory=Counter)
    copies: Counter[int] = field(default_factory=Counter)
    outside: int = 0


def verify(table: LakeTable) -> Proof:
    """Check the table. This reads the columns that identify rows, and asks no broker.

    Raises:
        LakeUnavailable: the store does not answer.
    """
    topic = table.where.topic or ""
    handle = table.lake.open(table.uri)
    if handle is None:
        return Proof(topic=topic, table=table.uri, problems=(f"there is no table {table.uri}",))
    snapshot = TableSnapshot(version=handle.version(), entry=None, handle=handle)
    entries = list(table.entries(snapshot))
    by_incarnation = incarnations(entries)
    ranges = [committed for incarnation in by_incarnation for committed in incarnation.ranges]
    problems = [
        problem
        for incarnation in by_incarnation
        for problem in (*incarnation.problems, *_broken_chains(incarnation.ranges))
    ]
    problems += _why_not_loadable(table)
    if entries:
        _, newest = entries[0]
        problems += mismatched_cursors(replace(snapshot, entry=newest))
        problems += _short_of_cursor(by_incarnation[0].ranges, newest.covered)
    complete, damaged = _files(table.lake, handle)
    problems += [_damaged_file(path, ranges) for path in damaged]
    counts = _count(table, ranges, complete)
    if counts.outside:
        problems.append(f"{counts.outside} rows are outside of every committed range")
    problems += _miscounts(ranges, counts)
    return Proof(
        topic=topic,
        table=table.uri,
        problems=tuple(dict.fromkeys(problems[:_MAX_PROBLEMS])),
        partitions=tuple(_proofs(by_incarnation, counts)),
    )


def _why_not_loadable(table: LakeTable) -> Iterator[str]:
    """Why a load would refuse to continue from the table."""
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


def _damaged_file(path: str, ranges: Iterable[CommittedRange]) -> str:
    contents = [str(committed) for committed in ranges if committed.path == path]
    return f"the data file {path} is missing or truncated: it held {', '.join(contents) or 'compacted rows'}"


def _count(table: LakeTable, ranges: Sequence[CommittedRange], paths: list[str]) -> _Counts:
    """Count rows and copies of each range in the complete files. DuckDB moves data to disk if memory is short."""
    counts = _Counts()
    if not paths:
        return counts
    numbered = [
        (
            number,
            committed.partition.broker,
            committed.partition.partition,
            committed.offsets.start,
            committed.offsets.stop,
            committed.loaded_at_us,
        )
        for number, committed in enumerate(ranges)
    ]
    names = ("number", "broker", "partition", "start", "stop", "loaded_us")
    columns = list(zip(*numbered, strict=True)) or [()] * len(names)
    held = pads.dataset(paths, filesystem=filesystem(table.uri, table.lake.options), format="parquet")
    with lake_errors(table.uri), duckdb.connect() as database:
        database.register("held", held)
        database.register("ranges", pa.table([pa.array(values, pa.int64()) for values in columns], names=names))
        for number, distinct_rows, all_rows in database.execute(_COUNT).fetchall():
            if number is None:
                counts.outside = int(all_rows)
            else:
                counts.rows[number] = int(distinct_rows)
                counts.copies[number] = int(all_rows) - int(distinct_rows)
    return counts


def _proofs(by_incarnation: Sequence[IncarnationRanges], counts: _Counts) -> Iterator[PartitionProof]:
    groups: dict[tuple[int, BrokerPartition], dict[int, CommittedRange]] = defaultdict(dict)
    ranges = ((index, committed) for index, found in enumerate(by_incarnation) for committed in found.ranges)
    for number, (index, committed) in enumerate(ranges):
        groups[index, committed.partition][number] = committed
    for (index, partition), numbered in sorted(groups.items(), key=lambda item: item[0]):
        yield _proof(by_incarnation[index].topic.incarnation, partition, numbered, counts)


def _proof(
    incarnation: str, partition: BrokerPartition, ranges: Mapping[int, CommittedRange], counts: _Counts
) -> PartitionProof:
    gaps: Counter[str] = Counter()
    for committed in ranges.values():
        gaps.update(committed.gaps)
    start = min(committed.offsets.start for committed in ranges.values())
    stop = max(committed.offsets.stop for committed in ranges.values())
    return PartitionProof(
        incarnation=incarnation,
        offsets=OffsetRange(partition, start, stop),
        rows=sum(counts.rows[number] for number in ranges),
        gaps=dict(gaps),
        missing=sum(max(0, committed.rows - counts.rows[number]) for number, committed in ranges.items()),
        duplicates=sum(counts.copies[number] for number in ranges),
    )


def _miscounts(ranges: Sequence[CommittedRange], counts: _Counts) -> Iterable[str]:
    for number, committed in enumerate(ranges):
        gaps = sum(committed.gaps.values())
        if committed.partition.broker is None and committed.rows + gaps != committed.offsets.size:
            yield f"{committed}: its {committed.rows} rows and {gaps} offsets in gaps do not add up to its size"
        if counts.rows[number] != committed.rows:
            yield f"{committed} holds {counts.rows[number]} rows, but its commit counted {committed.rows}"
        if counts.copies[number]:
            yield f"{committed} holds {counts.copies[number]} rows more than once"
