"""The cost of an increment is measured on real tables; the bound fails only if every round misses it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pipelines.delta.delta_log import DeltaLog
from pipelines.increments import rows as rows_module
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import apply_increment
from resources.stores.lake import filesystem
from resources.stores.object_reads import ObjectReader
from tests.bench import increment_cost
from tests.bench.increment_cost import IncrementCost, LargeTable, measure


def test_the_increment_of_the_last_load_is_measured_by_round(tmp_path: Path) -> None:
    cost = measure(tmp_path, rows=1000, small_loads=2, large_loads=6, rounds=2)
    assert len(cost.small_s) == len(cost.large_s) == 2
    assert all(seconds > 0 for seconds in (*cost.small_s, *cost.large_s))
    assert f"| {increment_cost.LARGE_LOADS * increment_cost.ROWS:,} |" in increment_cost.report(cost)


@pytest.mark.parametrize(("large", "grows"), [([1.2, 9.0], False), ([1.8, 1.6], True), ([1.0, 1.0], False)])
def test_the_bound_fails_only_if_every_round_misses_it(large: list[float], grows: bool) -> None:
    assert IncrementCost(small_s=[1.0, 1.0], large_s=large).grows is grows


@contextmanager
def counted_reads() -> Iterator[Counter[str]]:
    """Count the data files that increments open, and the entries of logs that are read."""
    reads, entry_text = Counter[str](), DeltaLog.text

    def opened(uri: str, options: Mapping[str, str]) -> Any:
        reads["files"] += 1
        return filesystem(uri, options)

    def read(log: DeltaLog, reader: ObjectReader, version: int) -> bytes:
        reads["entries"] += 1
        return entry_text(log, reader, version)

    with patch.object(rows_module, "filesystem", opened), patch.object(DeltaLog, "text", read):
        yield reads


def test_as_many_files_and_entries_are_read_of_a_large_table_as_of_a_small_one(tmp_path: Path) -> None:
    """This holds without a clock: it is what the measured cost follows from."""
    counts: dict[int, Counter[str]] = {}
    for loads in (2, 30):
        table, output = LargeTable(tmp_path / f"{loads}"), DeltaOutput(uri=str(tmp_path / f"out {loads}"))
        for _ in range(loads):
            table.load(100)
        apply_increment(
            table.table, lambda increment: increment.arrow([]).schema.empty_table(), consumer="c", into=output
        )
        table.load(100)
        with counted_reads() as counts[loads]:
            done = apply_increment(table.table, lambda increment: increment.arrow(["value"]), consumer="c", into=output)
        assert done is not None
        assert done["new"] == 100
    assert counts[2] == counts[30]
    assert counts[2]["files"] == 1
