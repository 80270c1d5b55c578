"""Verify: prove from the table alone that what its ledger says is what it holds.

For every partition: the committed ranges follow each other without a hole up to the cursor; every file is there; every
range has as many rows of its commit as that counted, none twice; no row lies outside. From 0.8 on, where offsets count
records, the rows and the counted gaps of a range make up all of it.
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

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Covered, Range
from pipelines.loading.live import Life, lives
from pipelines.loading.table import LakeTable, strayed_cursors
from pipelines.loading.table_log import Snapshot
from resources.errors import LakeUnavailable, LoadError
from resources.lake import Lake, filesystem, lake_errors

_MOST_PROBLEMS = 100
# A row is told from others by offset and, within one compressed 0.7 message, by inner. It is of a range that was
# committed with it: of the same loading time, for a topic that was made anew has the same offsets again.
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
    """What was proven of one partition: `[start, end)`, and how many of its rows are missing or there twice.

    A topic that was made anew, and loaded beside its former life, has partitions in each incarnation.
    """

    incarnation: str
    broker: int | None
    partition: int
    start: int
    end: int
    rows: int
    gaps: dict[str, int]
    missing: int
    duplicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was proven of a topic's table. It is proven when there is no problem."""

    topic: str
    table: str
    problems: tuple[str, ...] = ()
    partitions: tuple[PartitionProof, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether the table holds what its ledger says, each row once."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """As `penstock verify --json` prints it."""
        return {
            "topic": self.topic,
            "table": self.table,
            "proven": self.proven,
            "problems": list(self.problems),
            "partitions": [
                {name: getattr(one, name) for name in PartitionProof.__dataclass_fields__} for one in self.partitions
            ],
        }


@dataclass(slots=True)
class _Counts:
    rows: Counter[int] = field(default_factory=Counter)
    copies: Counter[int] = field(default_factory=Counter)
    outside: int = 0


def verify(table: LakeTable) -> Proof:
    """Prove the table. It reads offsets only, and asks no broker.

    Raises:
        LakeUnavailable: the store gives no answer.
    """
    topic = table.where.topic or ""
    handle = table.lake.open(table.uri)
    if handle is None:
        return Proof(topic=topic, table=table.uri, problems=(f"there is no table {table.uri}",))
    at = Snapshot(version=handle.version(), entry=None, handle=handle)
    entries = list(table.entries(at))
    found = lives(entries)
    ranges = [one for life in found for one in life.ranges]
    problems = [problem for life in found for problem in (*life.problems, *_broken_chains(life.ranges))]
    problems += _opening(table)
    if entries:
        problems += strayed_cursors(replace(at, entry=entries[0][1]))
        problems += _not_to_the_cursor(found[0].ranges, entries[0][1].covered)
    present, lost = _files(table.lake, handle)
    problems += [_lost(path, ranges) for path in lost]
    counts = _count(table, ranges, present)
    if counts.outside:
        problems.append(f"{counts.outside} rows lie outside of every committed range")
    problems += _miscounts(ranges, counts)
    return Proof(
        topic=topic,
        table=table.uri,
        problems=tuple(dict.fromkeys(problems[:_MOST_PROBLEMS])),
        partitions=tuple(_proofs(found, counts)),
    )


def _opening(table: LakeTable) -> Iterator[str]:
    """Why a load would not go on from the table."""
    try:
        table.existing()
    except LakeUnavailable:
        raise
    except LoadError as error:
        yield error.reason


def _not_to_the_cursor(ranges: Iterable[Range], covered: Covered) -> Iterator[str]:
    """The ranges of a partition must reach from its start to its cursor."""
    reach: dict[BrokerPartition, tuple[int, int]] = {}
    for one in ranges:
        start, stop = reach.get(one.id, (one.start, one.stop))
        reach[one.id] = (min(start, one.start), max(stop, one.stop))
    for id_, (start, cursor) in sorted(covered.items()):
        if reach.get(id_, (start, start)) != (start, cursor):
            yield f"partition {id_} is told to be covered [{start}, {cursor}), its ranges cover {reach.get(id_)}"


def _broken_chains(ranges: Iterable[Range]) -> Iterable[str]:
    """The ranges of a partition must follow each other: no hole, no overlap."""
    ends: dict[BrokerPartition, int] = {}
    for one in sorted(ranges, key=lambda one: (one.id, one.start, one.stop)):
        if ends.get(one.id, one.start) != one.start or one.stop < one.start:
            yield f"{one} does not follow the range before it, which ended at {ends.get(one.id)}"
        ends[one.id] = one.stop


def _files(lake: Lake, table: DeltaTable) -> tuple[list[str], list[str]]:
    """The table's files that are there whole, and those that are not."""
    with lake_errors(table.table_uri):
        adds = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
        sizes = {str(add["path"]): int(add["size_bytes"]) for add in adds}
        infos = filesystem(table.table_uri, lake.options).get_file_info(list(sizes))
    good = {info.path for info in infos if info.type == pafs.FileType.File and info.size == sizes[info.path]}
    return [path for path in sizes if path in good], [path for path in sizes if path not in good]


def _lost(path: str, ranges: Iterable[Range]) -> str:
    named = [str(one) for one in ranges if one.path == path]
    return f"the data file {path} is missing or cut: it held {', '.join(named) or 'compacted rows'}"


def _count(table: LakeTable, ranges: Sequence[Range], paths: list[str]) -> _Counts:
    """Rows and copies per range, counted over the files that are there. DuckDB spills to disk when it must."""
    counts = _Counts()
    if not paths:
        return counts
    numbered = [
        (number, one.broker, one.partition, one.start, one.stop, one.loaded_at_us) for number, one in enumerate(ranges)
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


def _proofs(found: Sequence[Life], counts: _Counts) -> Iterator[PartitionProof]:
    grouped: dict[tuple[int, BrokerPartition], dict[int, Range]] = defaultdict(dict)
    placed = ((life_number, one) for life_number, life in enumerate(found) for one in life.ranges)
    for number, (life_number, one) in enumerate(placed):
        grouped[life_number, one.id][number] = one
    for (life_number, id_), ranges in sorted(grouped.items(), key=lambda item: item[0]):
        yield _proof(found[life_number].topic.incarnation, id_, ranges, counts)


def _proof(incarnation: str, id_: BrokerPartition, ranges: Mapping[int, Range], counts: _Counts) -> PartitionProof:
    gaps: Counter[str] = Counter()
    for one in ranges.values():
        gaps.update(one.gaps)
    return PartitionProof(
        incarnation=incarnation,
        broker=id_.broker,
        partition=id_.partition,
        start=min(one.start for one in ranges.values()),
        end=max(one.stop for one in ranges.values()),
        rows=sum(counts.rows[number] for number in ranges),
        gaps=dict(gaps),
        missing=sum(max(0, one.rows - counts.rows[number]) for number, one in ranges.items()),
        duplicates=sum(counts.copies[number] for number in ranges),
    )


def _miscounts(ranges: Sequence[Range], counts: _Counts) -> Iterable[str]:
    for number, one in enumerate(ranges):
        told = one.rows + sum(one.gaps.values())
        if one.broker is None and told != one.stop - one.start:
            yield f"{one} is told to hold {one.rows} rows and {told - one.rows} offsets without one"
        if counts.rows[number] != one.rows:
            yield f"{one} holds {counts.rows[number]} rows, its commit counted {one.rows}"
        if counts.copies[number]:
            yield f"{one} holds {counts.copies[number]} rows more than once"
