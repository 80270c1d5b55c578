"""Verify: check, from the table alone, that the table holds what its ledger says.

For every partition: the committed ranges follow each other without a hole up to the cursor; every file is there; every
range has as many rows of its commit as the commit counted, and none twice; no row is outside of all ranges. From 0.8
on, where offsets count records, the rows and the gaps of a range add up to its size.
"""

import os
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.loading.incarnations import Extent, RangeFold
from pipelines.loading.ledger import Coverage, TopicIdentity
from pipelines.loading.outcome import printed_fields
from pipelines.loading.rows import FILE_SCHEMA
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
_RANGE_COLUMNS = ("number", "life", "broker", "partition", "start", "stop", "loaded_us", "rows", "gaps")
_RESULT = """
    CREATE VIEW result AS
    SELECT life, broker, partition, start, stop, rows, gaps, coalesce(row_count, 0)::BIGINT AS actual,
        coalesce(further_copies, 0)::BIGINT AS copies
    FROM ranges LEFT JOIN counts USING (number)
"""
_MISCOUNTS = """
    SELECT life, broker, partition, start, stop, rows, gaps, actual, copies FROM result
    WHERE (broker IS NULL AND rows + gaps <> stop - start) OR rows <> actual OR copies > 0
    ORDER BY ALL
"""
_PROOFS = """
    SELECT life, broker, partition, min(start), max(stop), sum(actual), sum(greatest(0, rows - actual)), sum(copies)
    FROM result GROUP BY life, broker, partition ORDER BY life, broker, partition
"""
_RANGES_AT_ONCE = 50_000
_MAX_MEMORY = "256MB"
_MAX_THREADS = 4


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
    fold, newest = RangeFold(), next(iter(table.entries(snapshot)), None)
    complete, damaged = _files(table.lake, handle)
    with TemporaryDirectory(prefix="penstock-verify-") as folder, duckdb.connect(config=_limits(folder)) as database:
        counted = _CountedRanges(database)
        held: dict[str, list[str]] = {path: [] for path in damaged}
        for incarnation, committed in fold.effective(table.entries(snapshot)):
            counted.add(incarnation, committed)
            if committed.path in held:
                held[committed.path].append(str(committed))
        with lake_errors(table.uri):
            counted.count(_rows(table, complete))
        problems = [problem for incarnation in fold.topics for problem in _range_problems(fold, incarnation)]
        problems += _why_not_loadable(table)
        if newest is not None:
            problems += mismatched_cursors(handle, newest[1])
            problems += _short_of_cursor(fold.extents(newest[1].topic), newest[1].covered)
        for path, contents in held.items():
            listed = ", ".join(reversed(contents)) or "compacted rows"
            problems.append(
                f"the data file {path} is missing or truncated: it held {listed}; `penstock replay {topic} "
                "--from earliest --to latest` fetches the rows again"
            )
        outside = counted.outside()
        if outside:
            problems.append(f"{outside} rows are outside of every committed range")
        problems += counted.miscounts()
        partitions = tuple(counted.proofs())
    return Proof(
        topic=topic,
        table=table.uri,
        problems=tuple(dict.fromkeys(problems[:_MAX_PROBLEMS])),
        partitions=partitions,
    )


def _limits(folder: str) -> dict[str, str | bool | int | float | list[str]]:
    """Let DuckDB move to the folder what does not fit into a fixed amount of memory, however long the history is."""
    threads = min(_MAX_THREADS, os.cpu_count() or 1)  # each needs memory of its own
    return {
        "temp_directory": folder,
        "memory_limit": _MAX_MEMORY,
        "threads": threads,
        "preserve_insertion_order": False,
    }


def _why_not_loadable(table: LakeTable) -> Iterator[str]:
    """The reason why a load would refuse to continue from the table, if there is one."""
    try:
        table.existing()
    except LakeUnavailable:
        raise
    except LoadError as error:
        yield error.reason


def _range_problems(fold: RangeFold, topic: TopicIdentity) -> Iterator[str]:
    """Problems of an incarnation's ranges, for example of those that do not start where the one before them ends."""
    yield from fold.problems[topic]
    for extents in fold.extents(topic).values():
        for before, after in pairwise(extents):
            yield f"{after.first} does not follow the range before it, which ended at {before.stop}"


def _short_of_cursor(extents: Mapping[BrokerPartition, Sequence[Extent]], covered: Coverage) -> Iterator[str]:
    """Problems of partitions whose ranges do not lead from their start to their cursor."""
    for partition, (start, cursor) in sorted(covered.items()):
        own = extents.get(partition)
        extent = (own[0].start, own[-1].stop) if own else None
        if (extent or (start, start)) != (start, cursor):
            actual = f"[{extent[0]}, {extent[1]})" if extent else "nothing"
            yield f"partition {partition}: the ledger covers [{start}, {cursor}), but its ranges cover {actual}"


def _files(lake: Lake, table: DeltaTable) -> tuple[list[str], list[str]]:
    """The table's files that are complete, and those that are missing or of another size."""
    with lake_errors(table.table_uri):
        adds = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
        sizes = {str(add["path"]): int(add["size_bytes"]) for add in adds}
        infos = filesystem(table.table_uri, lake.options).get_file_info(list(sizes))
    complete = {info.path for info in infos if info.type == pafs.FileType.File and info.size == sizes[info.path]}
    return [path for path in sizes if path in complete], [path for path in sizes if path not in complete]


def _rows(table: LakeTable, paths: Sequence[str]) -> pads.Dataset | pa.Table:
    """The rows of these files of the table."""
    if not paths:
        return FILE_SCHEMA.empty_table()
    return pads.dataset(paths, filesystem=filesystem(table.uri, table.lake.options), format="parquet")


class _CountedRanges:
    """The committed ranges in a table of `database`, and what the files hold of each.

    Of the ranges only the sums of each partition are in the memory of this process.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database
        self._topics: list[TopicIdentity] = []
        self._gaps: dict[tuple[int, BrokerPartition], Counter[str]] = defaultdict(Counter)
        self._waiting: list[tuple[int | None, ...]] = []
        self._number = 0
        columns = ", ".join(f'"{name}" BIGINT' for name in _RANGE_COLUMNS)
        database.execute(f"CREATE TABLE ranges ({columns})")

    def add(self, topic: TopicIdentity, committed: CommittedRange) -> None:
        """Add a range."""
        if topic not in self._topics:
            self._topics.append(topic)
        life, partition, offsets = self._topics.index(topic), committed.partition, committed.offsets
        self._gaps[life, partition].update(committed.gaps)
        gaps = sum(committed.gaps.values())
        place = (self._number, life, partition.broker, partition.partition, offsets.start, offsets.stop)
        self._waiting.append((*place, committed.loaded_at_us, committed.rows, gaps))
        self._number += 1
        if len(self._waiting) == _RANGES_AT_ONCE:
            self._store()

    def _store(self) -> None:
        columns = list(zip(*self._waiting, strict=True)) or [()] * len(_RANGE_COLUMNS)
        arrays = [pa.array(column, pa.int64()) for column in columns]
        self._database.register("waiting", pa.table(arrays, names=list(_RANGE_COLUMNS)))
        self._database.execute("INSERT INTO ranges SELECT * FROM waiting")
        self._database.unregister("waiting")
        self._waiting.clear()

    def count(self, files: pads.Dataset | pa.Table) -> None:
        """Count the rows of each range in the files."""
        self._store()
        self._database.register("files", files)
        self._database.execute(f"CREATE TABLE counts AS {_COUNT}")
        self._database.execute(_RESULT)

    def outside(self) -> int:
        """The number of rows that belong to no range."""
        query = "SELECT coalesce(sum(row_count + further_copies), 0) FROM counts WHERE number IS NULL"
        return int(self._database.execute(query).fetchall()[0][0])

    def miscounts(self) -> Iterator[str]:
        """The problems of single ranges."""
        miscounted = self._database.execute(_MISCOUNTS).fetchmany(_MAX_PROBLEMS)
        for _, broker, number, start, stop, rows, gaps, actual, copies in miscounted:
            offsets = OffsetRange(BrokerPartition(broker, number), start, stop)
            if broker is None and rows + gaps != offsets.size:
                yield f"{offsets}: its {rows} rows and {gaps} offsets in gaps do not add up to its size"
            if actual != rows:
                yield f"{offsets} holds {actual} rows, but its commit counted {rows}"
            if copies:
                yield f"{offsets} holds {copies} rows more than once"

    def proofs(self) -> Iterator[PartitionProof]:
        """The proof of each partition, in order of incarnation and partition."""
        for life, broker, number, start, stop, rows, missing, copies in self._database.execute(_PROOFS).fetchall():
            partition = BrokerPartition(broker, number)
            yield PartitionProof(
                incarnation=self._topics[life].incarnation,
                offsets=OffsetRange(partition, start, stop),
                rows=int(rows),
                gaps=dict(self._gaps[life, partition]),
                missing=int(missing),
                duplicates=int(copies),
            )
