"""Measures an erasure beside deltalake's own `delete`: `python -m tests.bench.erase_cost` prints their CPU time.

Both take the rows of the same persons out of copies of one table, whose rows are scattered over all files. An erasure
also proves that nothing else went, and may not cost more for it. The rounds take turns, and the bound fails only if
every round misses it.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.layout.conditions import one_of
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.verify.verify import verify
from resources.stores.lake import Lake
from tests.small_table import SmallTable

FILES, ROWS_PER_FILE, PERSONS, ERASED, ROUNDS = 200, 50_000, 2_000_000, 1_000, 3
MAX_RATIO = 1.0
_VALUE_BYTES = 32


class Persons(SmallTable):
    """A table whose rows have the address of a random person as their key."""

    def __init__(self, root: Path, persons: int) -> None:
        super().__init__(root)
        self._random = np.random.default_rng(1)
        self._addresses = pa.array([address(number) for number in range(persons)], pa.binary())

    def load(self, rows: int) -> None:
        """Add a file after those of the last load."""
        _, start = self.covered().get(BrokerPartition(0, 0), (0, 0))
        values = pa.array([self._random.bytes(_VALUE_BYTES) for _ in range(1000)], pa.binary())
        columns = {
            "offset": pa.array(np.arange(start, start + rows)),
            "key": self._addresses.take(pa.array(self._random.integers(0, len(self._addresses), rows))),
            "value": values.take(pa.array(self._random.integers(0, len(values), rows))),
        }
        self.commit(self.write_columns(OffsetRange(BrokerPartition(0, 0), start, start + rows), columns))


def address(number: int) -> bytes:
    """The address of a person."""
    return f"person-{number * 7919 % 10_000_000:07d}@shop.example".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseCost:
    """The CPU seconds of an erasure and of a `delete`, by round, and how many rows went."""

    ours_s: Sequence[float]
    theirs_s: Sequence[float]
    rows: int

    @property
    def ratios(self) -> list[float]:
        """How many times as much the erasure costs, by round."""
        return [ours / theirs for ours, theirs in zip(self.ours_s, self.theirs_s, strict=True)]

    @property
    def is_slower(self) -> bool:
        """Whether every round misses the bound."""
        return min(self.ratios) > MAX_RATIO


def measure(
    folder: Path,
    *,
    files: int = FILES,
    rows: int = ROWS_PER_FILE,
    persons: int = PERSONS,
    erased: int = ERASED,
    rounds: int = ROUNDS,
) -> EraseCost:
    """Measure both on copies of one table."""
    table = Persons(folder / "lake", persons)
    for _ in range(files):
        table.load(rows)
    ids = [address(number).decode() for number in range(0, persons, persons // erased)][:erased]
    costs: dict[str, list[float]] = {"ours": [], "theirs": []}
    counts = set[int]()
    for _ in range(rounds):
        for name, take_out in (("theirs", _delete), ("ours", _erase)):
            copy = folder / name
            shutil.copytree(folder / "lake", copy)
            cpu_s, count = take_out(copy, ids)
            costs[name].append(cpu_s)
            counts.add(count)
            shutil.rmtree(copy)
    [count] = counts
    return EraseCost(ours_s=costs["ours"], theirs_s=costs["theirs"], rows=count)


def _timed(action: Callable[[], int]) -> tuple[float, int]:
    began = time.process_time()
    count = action()
    return time.process_time() - began, count


def _erase(root: Path, ids: Sequence[str]) -> tuple[float, int]:
    table = DeltaLakeTable.of(Lake(root=str(root)), "main", "clicks")
    spent = _timed(lambda: erase(EraseRequest(table=table, condition=one_of("key", ids), run="bench")).rows)
    proof = verify(table)
    assert proof.proven, proof.problems
    return spent


def _delete(root: Path, ids: Sequence[str]) -> tuple[float, int]:
    uri = Lake(root=str(root)).table_uri("main", "clicks")
    keys = ", ".join(f"X'{id_.encode().hex()}'" for id_ in ids)
    return _timed(lambda: int(DeltaTable(uri).delete(f"key IN ({keys})")["num_deleted_rows"]))


def report(cost: EraseCost) -> str:
    """Markdown: one row for each way."""
    return "\n".join(
        [
            f"| {cost.rows:,} rows of {ERASED:,} persons leave {FILES * ROWS_PER_FILE:,} rows | CPU s |",
            "|---|---:|",
            f"| `penstock erase` | {min(cost.ours_s):.2f} |",
            f"| `delete` of deltalake | {min(cost.theirs_s):.2f} |",
        ]
    )


def main() -> None:
    """Measure and print. Exit code 1: an erasure costs more."""
    with tempfile.TemporaryDirectory(prefix="penstock-erase-") as home:
        cost = measure(Path(home))
    sys.stdout.write(f"{report(cost)}\n")
    if cost.is_slower:
        ratios = ", ".join(f"{ratio:.2f}" for ratio in cost.ratios)
        sys.stdout.write(f"bound: an erasure costs <= {MAX_RATIO} times as much: every round misses it ({ratios})\n")
    sys.exit(cost.is_slower)


if __name__ == "__main__":
    main()
