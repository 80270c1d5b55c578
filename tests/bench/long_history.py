"""Measures `verify` of a table whose ledger has very many commits (fault U19).

`python -m tests.bench.long_history <partitions> <commits>` prints the usage. The peak is that of a process that does
nothing but verify, with everything that it has imported.

The log of 35,000 commits with 1,000 ranges each would take 8 GB. So the text of each entry is generated when it is
read. The newest version of the table is real: a checkpoint, and one file of rows for each day, as `penstock clean`
leaves them.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.delta.commits import read_commit
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import KEY, SEQUENCE, CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.table.table_commit import TableCommit
from pipelines.verify.verify import verify
from resources.stores.lake import Lake
from tests.bench.measure import Usage, measured

_TOPIC = TopicIdentity(cluster="main", name="clicks", incarnation="7")
_COMMITS_PER_FILE = 96
_COMMIT_US = 900_000_000
"""A load runs every 15 minutes, and a file has the rows of one day."""
# Numbers that no other part of an entry's text contains; each entry replaces them by its own.
_START, _STOP, _SEQUENCE, _LOADED_US = 7_000_000_001, 7_000_000_002, 7_000_000_003, 7_000_000_004


@dataclass(frozen=True, slots=True, kw_only=True)
class LongHistory(DeltaLakeTable):
    """The table of a topic, to which each commit added one row of every partition."""

    template: bytes
    app_ids: tuple[str, ...]

    @classmethod
    def create(cls, root: Path, *, partitions: int, commits: int) -> Self:
        """Write the newest version of the table. The ranges of commit `n` are the offsets `[n - 1, n)`."""
        table = DeltaLakeTable.of(Lake(root=str(root)), "main", "clicks")
        table.snapshot()
        folder = Path(table.uri)
        adds = [
            _add(folder, range(first, min(first + _COMMITS_PER_FILE, commits + 1)), partitions)
            for first in range(1, commits + 1, _COMMITS_PER_FILE)
        ]
        _write_checkpoint(folder, adds, partitions, commits)
        return cls.open(root, partitions=partitions)

    @classmethod
    def open(cls, root: Path, *, partitions: int) -> Self:
        """The table that `create` has written."""
        table = DeltaLakeTable.of(Lake(root=str(root)), "main", "clicks")
        template = _entry(partitions).to_json().encode()
        return cls(lake=table.lake, uri=table.uri, where=table.where, template=template, app_ids=_app_ids(partitions))

    def commits(self, newest: int, *, after: int = -1) -> Iterator[TableCommit]:
        """See DeltaLakeTable."""
        for version in range(newest, max(after, 0), -1):
            entry = self.template
            numbers = {_START: version - 1, _STOP: version, _SEQUENCE: version, _LOADED_US: version * _COMMIT_US}
            for placeholder, number in numbers.items():
                entry = entry.replace(b"%d" % placeholder, b"%d" % number)
            line = msgspec.json.encode({"commitInfo": {"operation": "WRITE", KEY: entry.decode()}})
            cursors = [{"txn": {"appId": app_id, "version": version}} for app_id in self.app_ids]
            yield read_commit(version, [msgspec.json.decode(line), *cursors])


def _app_ids(partitions: int) -> tuple[str, ...]:
    return (SEQUENCE, *(_TOPIC.app_id(BrokerPartition(None, number)) for number in range(partitions)))


def _entry(partitions: int) -> LedgerEntry:
    """The entry of a commit, with placeholders for the numbers that differ between commits."""
    ids = [BrokerPartition(None, number) for number in range(partitions)]
    return LedgerEntry(
        commit=f"commit {_SEQUENCE}",
        run=f"run {_SEQUENCE}",
        code="bench",
        kind=CommitKind.LOAD,
        sequence=_SEQUENCE,
        ranges=tuple(
            CommittedRange(
                offsets=OffsetRange(partition, _START, _STOP),
                rows=1,
                bytes=100,
                loaded_at_us=_LOADED_US,
                paths=(f"date=2026-01-02/{partition}-{_SEQUENCE}.parquet",),
                source="1@broker:9092",
                isolation="committed",
            )
            for partition in ids
        ),
        state=TableState(topic=_TOPIC, covered=dict.fromkeys(ids, (0, _STOP)), epochs=dict.fromkeys(ids, 5)),
    )


def _add(folder: Path, commits: range, partitions: int) -> dict[str, object]:
    """Write the file with the rows of these commits; returns the action that adds it to the table."""
    rows = len(commits) * partitions
    versions = np.repeat(np.arange(commits.start, commits.stop), partitions)
    columns = {
        "topic": pa.repeat("clicks", rows),
        "partition": pa.array(np.tile(np.arange(partitions), len(commits)), pa.int32()),
        "offset": pa.array(versions - 1),
        "inner": pa.repeat(pa.scalar(0, pa.int32()), rows),
        "loaded_at": pa.array(versions * _COMMIT_US).cast(FILE_SCHEMA.field("loaded_at").type),
    }
    table = pa.Table.from_arrays(
        [columns[name].cast(kind) if name in columns else pa.nulls(rows, kind) for name, kind in _names_and_types()],
        schema=FILE_SCHEMA,
    )
    path = f"date=2026-01-02/{commits.start}.parquet"
    (folder / path).parent.mkdir(exist_ok=True)
    pq.write_table(table, folder / path, compression="zstd")
    size = (folder / path).stat().st_size
    first, last = (
        {"loaded_at": datetime.fromtimestamp(version * _COMMIT_US / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        for version in (commits.start, commits.stop - 1)
    )
    return {
        "path": path,
        "size": size,
        "partitionValues": {"date": "2026-01-02"},
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows, "minValues": first, "maxValues": last, "nullCount": {}}),
    }


def _names_and_types() -> list[tuple[str, pa.DataType]]:
    return list(zip(FILE_SCHEMA.names, FILE_SCHEMA.types, strict=True))


def _write_checkpoint(folder: Path, adds: list[dict[str, object]], partitions: int, commits: int) -> None:
    """Make the newest version of the table `commits`, whose log begins with a checkpoint."""
    log = folder / "_delta_log"
    actions: list[dict[str, object]] = [{"commitInfo": {"operation": "WRITE"}}]
    actions += [{"txn": {"appId": name, "version": commits}} for name in _app_ids(partitions)]
    actions += [{"add": add} for add in adds]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{1:020d}.json").write_text(text)
    DeltaTable(str(folder)).create_checkpoint()
    if commits > 1:
        shutil.move(log / f"{1:020d}.checkpoint.parquet", log / f"{commits:020d}.checkpoint.parquet")
        (log / "_last_checkpoint").write_text(json.dumps({"version": commits, "size": len(actions)}))
        for version in (0, 1):
            (log / f"{version:020d}.json").unlink()
        (log / f"{commits:020d}.json").write_text(json.dumps(actions[0]) + "\n")


def usage(partitions: int, commits: int) -> Usage:
    """The usage of a process that verifies the table."""
    with tempfile.TemporaryDirectory(prefix="penstock-history-") as home:
        LongHistory.create(Path(home), partitions=partitions, commits=commits)
        command = [sys.executable, "-m", "tests.bench.long_history", str(partitions), str(commits), home]
        return Usage.parse(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def _verify(partitions: int, commits: int, home: Path) -> Usage:
    with measured() as clock:
        proof = verify(LongHistory.open(home, partitions=partitions))
    assert proof.problems == ()
    assert {partition.rows for partition in proof.partitions} == {commits}
    assert clock.usage is not None
    return clock.usage


def main() -> None:
    """Print the usage of the measurement that the arguments describe."""
    partitions, commits, *homes = sys.argv[1:]
    sizes = int(partitions), int(commits)
    (_verify(*sizes, Path(homes[0])) if homes else usage(*sizes)).write()


if __name__ == "__main__":
    main()
