"""Verify: prove from the table alone that what its ledger says is what it holds.

For every partition: the committed ranges follow each other without a hole up to the cursor; every file is there; every
range has as many rows as its commit counted, none twice; no row lies outside. From 0.8 on, where offsets count
records, the rows and the counted gaps of a range make up all of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition
from pipelines.loading import ledger
from pipelines.loading.ledger import Range
from resources.lake import Lake, filesystem, lake_errors

_MOST_PROBLEMS = 100
# A row is told from others by offset and, within one compressed 0.7 message, by inner.
_COUNT = """
    WITH found AS (
        SELECT broker, partition, "offset" AS start_offset, "inner" AS inner_index, count(*) AS copies
        FROM held GROUP BY ALL
    )
    SELECT ranges.number, count(*) AS distinct_rows, sum(copies) AS all_rows
    FROM found LEFT JOIN ranges
        ON ranges.broker IS NOT DISTINCT FROM found.broker AND ranges.partition = found.partition
        AND found.start_offset >= ranges.start AND found.start_offset < ranges.stop
    GROUP BY ranges.number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProof:
    """What was proven of one partition: `[start, end)`, and how many of its rows are missing or there twice."""

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


def verify(lake: Lake, topic: str, uri: str) -> Proof:
    """Prove the table at `uri`. It reads offsets only, and asks no broker.

    Raises:
        LakeUnavailable: the store gives no answer.
    """
    table = lake.open(uri)
    if table is None:
        return Proof(topic=topic, table=uri, problems=(f"there is no table {uri}",))
    found = list(ledger.entries(lake, table))
    ranges = [one for _, entry in reversed(found) for one in entry.ranges]
    problems = list(_broken_chains(ranges))
    if found:
        problems += ledger.strayed_cursors(table, found[0][1])
    present, lost = _files(lake, table)
    problems += [_lost(path, ranges) for path in lost]
    counts = _count(lake, uri, ranges, present)
    if counts.outside:
        problems.append(f"{counts.outside} rows lie outside of every committed range")
    partitions = _proofs(ranges, counts)
    problems += _miscounts(ranges, counts)
    return Proof(topic=topic, table=uri, problems=tuple(problems[:_MOST_PROBLEMS]), partitions=partitions)


def _name(one: Range) -> str:
    return f"partition {one.id} [{one.start}, {one.stop})"


def _broken_chains(ranges: Iterable[Range]) -> Iterable[str]:
    """The ranges of a partition must follow each other: no hole, no overlap."""
    ends: dict[BrokerPartition, int] = {}
    for one in sorted(ranges, key=lambda one: (one.id, one.start, one.stop)):
        if ends.get(one.id, one.start) != one.start or one.stop < one.start:
            yield f"{_name(one)} does not follow the range before it, which ended at {ends.get(one.id)}"
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
    named = [_name(one) for one in ranges if one.path == path]
    return f"the data file {path} is missing or cut: it held {', '.join(named) or 'compacted rows'}"


def _count(lake: Lake, uri: str, ranges: Sequence[Range], paths: list[str]) -> _Counts:
    """Rows and copies per range, counted over the files that are there. DuckDB spills to disk when it must."""
    counts = _Counts()
    if not paths:
        return counts
    numbered = [(number, one.broker, one.partition, one.start, one.stop) for number, one in enumerate(ranges)]
    names = ("number", "broker", "partition", "start", "stop")
    columns = list(zip(*numbered, strict=True)) or [()] * len(names)
    held = pads.dataset(paths, filesystem=filesystem(uri, lake.options), format="parquet")
    with lake_errors(uri), duckdb.connect() as database:
        database.register("held", held)
        database.register("ranges", pa.table([pa.array(values, pa.int64()) for values in columns], names=names))
        for number, distinct_rows, all_rows in database.execute(_COUNT).fetchall():
            if number is None:
                counts.outside = int(all_rows)
            else:
                counts.rows[number] = int(distinct_rows)
                counts.copies[number] = int(all_rows) - int(distinct_rows)
    return counts


def _proofs(ranges: Sequence[Range], counts: _Counts) -> tuple[PartitionProof, ...]:
    grouped: dict[BrokerPartition, list[int]] = defaultdict(list)
    for number, one in enumerate(ranges):
        grouped[one.id].append(number)
    return tuple(_proof(id_, numbers, ranges, counts) for id_, numbers in sorted(grouped.items()))


def _proof(id_: BrokerPartition, numbers: list[int], ranges: Sequence[Range], counts: _Counts) -> PartitionProof:
    gaps: Counter[str] = Counter()
    for number in numbers:
        gaps.update(ranges[number].gaps)
    return PartitionProof(
        broker=id_.broker,
        partition=id_.partition,
        start=min(ranges[number].start for number in numbers),
        end=max(ranges[number].stop for number in numbers),
        rows=sum(counts.rows[number] for number in numbers),
        gaps=dict(gaps),
        missing=sum(max(0, ranges[number].rows - counts.rows[number]) for number in numbers),
        duplicates=sum(counts.copies[number] for number in numbers),
    )


def _miscounts(ranges: Sequence[Range], counts: _Counts) -> Iterable[str]:
    for number, one in enumerate(ranges):
        told = one.rows + sum(one.gaps.values())
        if one.broker is None and told != one.stop - one.start:
            yield f"{_name(one)} is told to hold {one.rows} rows and {told - one.rows} offsets without one"
        if counts.rows[number] != one.rows:
            yield f"{_name(one)} holds {counts.rows[number]} rows, its commit counted {one.rows}"
        if counts.copies[number]:
            yield f"{_name(one)} holds {counts.copies[number]} rows more than once"
