"""Measures what folders of event days cost a slice: `python -m tests.bench.day_cost` prints CPU time and files.

The same rows are written with and without such folders. Only the writing of files is measured: the fetch and the
decoder do not change, so the share of a whole load is smaller. The bound is for a slice whose records are of one day.
The fastest rounds are compared, because other programs only make rounds slower. Two whole writes still differ by 15 %
on a busy machine. So the bound is for the time in which rows are split, which is all that such a slice does more.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_io.model import BrokerPartition, Generation, OffsetRange
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.source import Source
from pipelines.fetch.day_files import DayFiles
from pipelines.fetch.fetch_task import FetchTask
from pipelines.fetch.slice_file import SliceFile
from pipelines.layout.event_days import EventDays
from pipelines.layout.layout import EVENT_DAY, LOADED, RAW
from pipelines.layout.rows import table_rows

ROWS, ROUNDS = 300_000, 16
MAX_SHARE = 0.15
_BATCHES = 6
_VALUE_BYTES = 183
_DAY_US = 86_400_000_000
_LOADED_US = 1_764_000_000_000_000
ONE_DAY = "ordered, one day"
TIMES: Mapping[str, tuple[int, float]] = {
    ONE_DAY: (1, 0),
    "ordered, two days": (2, 0),
    "one day, late by 6 hours on average": (1, 0.25),
    "ordered, a week": (7, 0),
    "a week, late by a day on average": (7, 1),
    "ordered, 60 days": (60, 0),
}
"""The days that the records of a slice span, and by how many days they are late on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCost:
    """The CPU seconds for the files of a slice with folders of load dates and of event days, by round.

    `split_s` are the CPU seconds in which rows get their days, and `files` is the number of files with such folders.
    """

    loaded_s: Sequence[float]
    by_day_s: Sequence[float]
    split_s: Sequence[float]
    files: int

    @property
    def split_share(self) -> float:
        """The time in which rows get their days, as a fraction of the time that a slice takes without days."""
        return min(self.split_s) / min(self.loaded_s)

    @property
    def ratio(self) -> float:
        """How many times as much the folders of event days cost, in the fastest round of each kind."""
        return min(self.by_day_s) / min(self.loaded_s)


def measure(folder: Path, *, rows: int = ROWS, rounds: int = ROUNDS) -> dict[str, DayCost]:
    """Measure each case; the rounds of both kinds of folders take turns."""
    costs = {}
    for name, (days, late) in TIMES.items():
        batches = list(_batches(rows, days, late))
        seconds: dict[str, list[float]] = {LOADED: [], EVENT_DAY: []}
        files = 0
        for number in range(-1, rounds):  # the first round is a warm-up
            for by in (LOADED, EVENT_DAY)[:: 1 if number % 2 else -1]:
                spent, count = _cpu_s(folder / f"{name}-{number}-{by}", by, batches)
                seconds[by] += [spent] if number >= 0 else []
                files = count if by == EVENT_DAY else files
        split_s = [_split_s(batches) for _ in range(rounds)]
        costs[name] = DayCost(loaded_s=seconds[LOADED], by_day_s=seconds[EVENT_DAY], split_s=split_s, files=files)
    return costs


def _batches(rows: int, days: int, late: float) -> Iterator[pa.RecordBatch]:
    """The rows of a slice as the decoder gives them; the last record was sent an hour before the load."""
    rng = np.random.default_rng(1)
    ages = np.linspace(days - 1 / 24, 1 / 24, rows) if days > 1 else np.linspace(0.4, 0.1, rows)
    times_ms = (_LOADED_US - (ages + rng.exponential(late, rows)) * _DAY_US) // 1000 if late else None
    times_ms = (_LOADED_US - ages * _DAY_US) // 1000 if times_ms is None else times_ms
    values = rng.integers(32, 64, rows * _VALUE_BYTES, np.uint8).tobytes()
    for part in np.array_split(np.arange(rows), _BATCHES):
        ends = np.arange(0, (len(part) + 1) * _VALUE_BYTES, _VALUE_BYTES, dtype=np.int32)
        data = pa.py_buffer(values[part[0] * _VALUE_BYTES : (part[-1] + 1) * _VALUE_BYTES])
        columns = {
            "offset": pa.array(part),
            "timestamp": pa.array(times_ms[part].astype(np.int64)).cast(pa.timestamp("ms", tz="UTC")),
            "value": pa.Array.from_buffers(pa.binary(), len(part), [None, pa.py_buffer(ends), data]),
        }
        constants = {"topic": "clicks", "partition": 0, "loaded_at": _LOADED_US}
        yield table_rows(pa.RecordBatch.from_pydict(columns), constants)


def _cpu_s(folder: Path, partition_by: str, batches: Sequence[pa.RecordBatch]) -> tuple[float, int]:
    """The CPU seconds for the files, and their number."""
    source = Source(cluster="main", generation=Generation.MODERN, brokers=(), read_settings=ReadSettings())
    task = FetchTask(
        spark_task=0,
        source=source,
        planned=PlannedRange(topic="clicks", offsets=OffsetRange(BrokerPartition(None, 0), 0, 1), incarnation="1"),
        table_uri=str(folder),
        folder="date=2026-01-02" if partition_by == LOADED else "",
        options={},
        parquet_codec="zstd",
        loaded_at_us=_LOADED_US,
        partition_by=partition_by,
    )
    began = time.process_time()
    with SliceFile(task) if task.folder else DayFiles(task) as output:
        for batch in batches:
            output.write(batch)
    return time.process_time() - began, len(output.files)


def _split_s(batches: Sequence[pa.RecordBatch]) -> float:
    """The CPU seconds in which the rows of a slice get their days."""
    days = EventDays(RAW.partitioned_by(EVENT_DAY), _LOADED_US)
    began = time.process_time()
    for batch in batches:
        for _ in days.split(batch):
            pass
    return time.process_time() - began


def report(costs: Mapping[str, DayCost]) -> str:
    """A table of the costs."""
    names = "| times of the records | loaded, CPU s | event_day, CPU s | ratio | of it split | files |"
    lines = [names, "|---|---|---|---|---|---|"]
    lines += [
        f"| {name} | {min(cost.loaded_s):.3f} | {min(cost.by_day_s):.3f} | {cost.ratio:.2f} "
        f"| {cost.split_share:.1%} | {cost.files} |"
        for name, cost in costs.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and end with an error if the bound does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(Path(folder))
    sys.stdout.write(f"{report(costs)}\n")
    if costs[ONE_DAY].split_share > MAX_SHARE:
        sys.exit(f"folders of event days cost more than {MAX_SHARE:.0%} for a slice of one day")


if __name__ == "__main__":
    main()
