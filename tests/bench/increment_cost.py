"""Measures increments of a small and of a large table: `python -m tests.bench.increment_cost` prints their cost.

The cost must grow with the new rows, and not with the table. Both tables get the same number of new rows, and CPU time
of this process is compared, because the disk and other programs change the time on the clock. The bound fails only if
every round misses it.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment
from tests.small_table import SmallTable

SMALL_LOADS, LARGE_LOADS, ROWS, ROUNDS = 5, 100, 1_000_000, 3
MAX_RATIO = 1.5
_VALUE_BYTES = 32


class LargeTable(SmallTable):
    """A table to which each load adds the same number of rows."""

    def load(self, rows: int) -> None:
        """Add rows after those of the last load."""
        _, start = self.covered().get(BrokerPartition(0, 0), (0, 0))
        values = np.random.default_rng(start).bytes(_VALUE_BYTES * rows)
        buffers = [
            None,
            pa.py_buffer(np.arange(0, len(values) + 1, _VALUE_BYTES, dtype=np.int32)),
            pa.py_buffer(values),
        ]
        columns = {
            "offset": pa.array(np.arange(start, start + rows)),
            "value": pa.Array.from_buffers(pa.binary(), rows, buffers),
        }
        self.commit(self.write_columns(OffsetRange(BrokerPartition(0, 0), start, start + rows), columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementCost:
    """The CPU seconds of the same increment of a table with few rows, and of one with many, by round."""

    small_s: Sequence[float]
    large_s: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        """How many times as much the increment of the large table costs, by round."""
        return [large / small for small, large in zip(self.small_s, self.large_s, strict=True)]

    @property
    def grows(self) -> bool:
        """Whether every round misses the bound."""
        return min(self.ratios) > MAX_RATIO


def measure(
    folder: Path,
    *,
    rows: int = ROWS,
    small_loads: int = SMALL_LOADS,
    large_loads: int = LARGE_LOADS,
    rounds: int = ROUNDS,
) -> IncrementCost:
    """Measure the increment of the last load, into a Delta table."""
    small = _Case(folder / "small", rows=rows, loads=small_loads, rounds=rounds)
    large = _Case(folder / "large", rows=rows, loads=large_loads, rounds=rounds)
    small.cpu_s("warm-up")
    # The rounds of both tables take turns, so that a slower machine slows both.
    pairs = [(small.cpu_s(f"round {number}"), large.cpu_s(f"round {number}")) for number in range(rounds)]
    return IncrementCost(small_s=[pair[0] for pair in pairs], large_s=[pair[1] for pair in pairs])


class _Case:
    """A table whose last load is new for several consumers."""

    def __init__(self, folder: Path, *, rows: int, loads: int, rounds: int) -> None:
        self._folder, self._rows = folder, rows
        self._table = LargeTable(folder / "lake")
        for _ in range(loads - 1):
            self._table.load(rows)
        for consumer in ("warm-up", *(f"round {number}" for number in range(rounds))):
            self._apply(consumer, lambda increment: increment.arrow(["value"]).schema.empty_table())
        self._table.load(rows)

    def _apply(self, consumer: str, transform: Any) -> int:
        output = DeltaOutput(uri=str(self._folder / consumer))
        done = apply_increment(self._table.table, transform, consumer=consumer, into=output)
        assert done is not None
        return int(done["new"])

    def cpu_s(self, consumer: str) -> float:
        """The CPU seconds of the increment of this consumer."""
        began = time.process_time()
        new = self._apply(consumer, _values)
        spent = time.process_time() - began
        assert new == self._rows
        return spent


def _values(increment: Increment) -> pa.RecordBatchReader:
    return increment.arrow(["value"])


def report(cost: IncrementCost) -> str:
    """Markdown: one row per table, and the lowest ratio."""
    small, large = min(cost.small_s), min(cost.large_s)
    return "\n".join(
        [
            f"| {ROWS:,} new rows of | CPU s |",
            "|---|---:|",
            f"| {SMALL_LOADS * ROWS:,} | {small:.2f} |",
            f"| {LARGE_LOADS * ROWS:,} | {large:.2f} |",
        ]
    )


def main() -> None:
    """Measure and print. Exit code 1: the cost grows with the table."""
    with tempfile.TemporaryDirectory(prefix="penstock-increments-") as home:
        cost = measure(Path(home))
    sys.stdout.write(f"{report(cost)}\n")
    if cost.grows:
        ratios = ", ".join(f"{ratio:.2f}" for ratio in cost.ratios)
        sys.stdout.write(
            f"bound: the large table costs <= {MAX_RATIO} times as much: every round misses it ({ratios})\n"
        )
    sys.exit(cost.grows)


if __name__ == "__main__":
    main()
