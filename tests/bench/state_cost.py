"""Measures an update of a state table: `python -m tests.bench.state_cost` prints its cost beside deltalake's own MERGE.

Both merge the same changed keys into tables with the same rows. The rounds take turns, so that a slower machine slows
both. The bound fails only if every round misses it. `--quick` measures a tenth of the rows.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.delta.write_options import WRITING
from pipelines.state_tables.state_table import DELETED, POSITION, state_output
from pipelines.state_tables.update import update_state
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_state import StateSettings
from tests.small_table import SmallTable

KEYS, CHANGED, ROUNDS = 10_000_000, 100_000, 3
QUICK = 10
MAX_RATIO = 2.0
_VALUE_BYTES, _LOAD_ROWS = 64, 1_000_000
BY_KEY = TopicOptions(state=StateSettings(key=("key",)))


class KeyTable(SmallTable):
    """A table with a numbered key in each row."""

    def load(self, numbers: np.ndarray) -> None:
        """Add a row for each of these keys."""
        _, start = self.covered().get(BrokerPartition(0, 0), (0, 0))
        values = np.random.default_rng(start).bytes(_VALUE_BYTES * len(numbers))
        ends = pa.py_buffer(np.arange(0, len(values) + 1, _VALUE_BYTES, dtype=np.int32))
        columns = {
            "offset": pa.array(np.arange(start, start + len(numbers))),
            "key": pc.cast(pc.cast(pa.array(numbers), pa.string()), pa.binary()),
            "value": pa.Array.from_buffers(pa.binary(), len(numbers), [None, ends, pa.py_buffer(values)]),
        }
        offsets = OffsetRange(BrokerPartition(0, 0), start, start + len(numbers))
        self.commit(self.write_columns(offsets, columns))

    def newest_rows(self) -> pa.Table:
        """The rows that the newest load added."""
        time_of_load = pa.scalar(self._loaded_at, pa.timestamp("us", tz="UTC"))
        return self.handle().to_pyarrow_dataset().to_table(filter=pc.field("loaded_at") == time_of_load)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCost:
    """The seconds of an update of a state table, and of a MERGE of the same rows, by round."""

    update_s: Sequence[float]
    merge_s: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        """How many times as long the update takes, by round."""
        return [update / merge for update, merge in zip(self.update_s, self.merge_s, strict=True)]

    @property
    def is_slow(self) -> bool:
        """Whether every round misses the bound."""
        return min(self.ratios) > MAX_RATIO


def measure(folder: Path, *, keys: int = KEYS, changed: int = CHANGED, rounds: int = ROUNDS) -> StateCost:
    """Merge scattered keys into both tables, in each round others."""
    table = KeyTable(folder / "lake")
    for start in range(0, keys, _LOAD_ROWS):
        table.load(np.arange(start, min(start + _LOAD_ROWS, keys)))
    update_state(table.table, BY_KEY)
    rival = folder / "rival"
    state = DeltaTable(state_output(table.table).uri)
    # The rival gets files of the same size.
    for path in state.file_uris():
        write_deltalake(rival, pq.read_table(path), mode="append", writer_properties=WRITING)
    random, update_s, merge_s = np.random.default_rng(7), list[float](), list[float]()
    for _ in range(rounds):
        table.load(random.choice(keys, changed, replace=False))
        rows = table.newest_rows()
        update_s.append(_seconds_of_update(table, changed))
        merge_s.append(_seconds_of_merge(rival, rows, changed))
    return StateCost(update_s=update_s, merge_s=merge_s)


def _seconds_of_update(table: KeyTable, changed: int) -> float:
    began = time.monotonic()
    done = update_state(table.table, BY_KEY)
    spent = time.monotonic() - began
    assert (done.changed, done.added, done.rebuilt) == (changed, 0, False)
    return spent


def _seconds_of_merge(rival: Path, rows: pa.Table, changed: int) -> float:
    target = DeltaTable(rival)
    schema = pa.schema(target.schema().to_arrow())
    position = pa.array([None] * len(rows), schema.field(POSITION).type)
    deleted = pa.array(np.zeros(len(rows), np.bool_))
    source = rows.append_column(DELETED, deleted).append_column(POSITION, position).select(schema.names)
    began = time.monotonic()
    merge = target.merge(
        source, "target.key = source.key", source_alias="source", target_alias="target", writer_properties=WRITING
    )
    metrics = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    spent = time.monotonic() - began
    assert metrics["num_target_rows_updated"] == changed
    return spent


def report(cost: StateCost, keys: int, changed: int) -> str:
    """Markdown: a row for each way."""
    return "\n".join(
        [
            f"| {changed:,} changed keys into {keys:,} | s |",
            "|---|---:|",
            f"| update of a state table | {min(cost.update_s):.1f} |",
            f"| MERGE of deltalake | {min(cost.merge_s):.1f} |",
        ]
    )


def main() -> None:
    """Measure and print. Exit code 1: an update takes too long."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    part = QUICK if parser.parse_args().quick else 1
    with tempfile.TemporaryDirectory(prefix="penstock-state-") as home:
        cost = measure(Path(home), keys=KEYS // part, changed=CHANGED // part)
    sys.stdout.write(f"{report(cost, KEYS // part, CHANGED // part)}\n")
    if cost.is_slow:
        ratios = ", ".join(f"{ratio:.2f}" for ratio in cost.ratios)
        sys.stdout.write(f"bound: an update takes <= {MAX_RATIO} times as long: every round misses it ({ratios})\n")
    sys.exit(cost.is_slow)


if __name__ == "__main__":
    main()
