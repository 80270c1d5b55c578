"""A model of what the loads of a day cost, for docs/scale.md. `python -m tests.bench.growth` prints the tables.

The constants were measured; the page says where. The test of the page compares the sizes with those of real tables.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

DAY_S = 86_400
RECORD_S = 0.44e-6
"""CPU seconds for a record of 200 B in zstd, from the socket to the file."""
RECORD_BYTES = 200
FILE_S = 0.0019
"""CPU seconds for each file: one slice of a partition with news."""
TOPIC_S = 0.005
"""CPU seconds for each topic with news: plan and commit."""
SLICE_RECORDS = 2_000_000
ENTRY_BYTES, ENTRY_BYTES_OF_FILE = 800, 1_281
"""An entry of the log, and the part of it for each file."""
CHECKPOINT_BYTES_OF_FILE = 590
"""A checkpoint has so many bytes for each file of the table. There is one every ten commits."""
CHECKPOINT_COMMITS = 10
REQUESTS, REQUESTS_OF_FILE = 15, 3
"""At most so many requests to an object store for a load, and more for each file."""
KEEP_DAYS = 7
"""`penstock clean` merges the files of a table every week, so this is how many days of files it has at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Topics with partitions of the same size, which are all loaded so often a day.

    Args:
        partitions: the number of all partitions, each with news at each load.
        topics: the number of topics.
        bytes_per_s: the bytes that producers send per second, before compression.
        loads: the number of loads of each topic in a day.
    """

    partitions: int
    topics: int
    bytes_per_s: float
    loads: int

    @property
    def records(self) -> float:
        """The records of a day."""
        return self.bytes_per_s * DAY_S / RECORD_BYTES

    @property
    def files(self) -> int:
        """The files of a day: one for each slice."""
        slices = -(-self.records // (self.partitions * self.loads * SLICE_RECORDS))
        return int(self.partitions * self.loads * max(1, slices))

    @property
    def commits(self) -> int:
        """The commits of a day, without those of long loads, which have more than one."""
        return self.topics * self.loads

    @property
    def cpu_s(self) -> float:
        """The CPU seconds of a day."""
        return self.records * RECORD_S + self.files * FILE_S + self.commits * TOPIC_S

    @property
    def requests(self) -> int:
        """At most so many requests to an object store in a day."""
        return self.commits * REQUESTS + self.files * REQUESTS_OF_FILE

    @property
    def log_bytes(self) -> float:
        """The bytes that a day adds to the logs, when each table has the files of a week."""
        entries = self.commits * ENTRY_BYTES + self.files * ENTRY_BYTES_OF_FILE
        checkpoints = self.commits / CHECKPOINT_COMMITS
        return entries + checkpoints * CHECKPOINT_BYTES_OF_FILE * self.files * KEEP_DAYS / self.topics


DEPLOYMENTS = (
    Deployment(partitions=10, topics=1, bytes_per_s=1e6, loads=96),
    Deployment(partitions=10, topics=1, bytes_per_s=100e6, loads=96),
    Deployment(partitions=1_000, topics=100, bytes_per_s=1e6, loads=96),
    Deployment(partitions=1_000, topics=100, bytes_per_s=100e6, loads=96),
    Deployment(partitions=1_000, topics=100, bytes_per_s=1e9, loads=96),
    Deployment(partitions=100_000, topics=10_000, bytes_per_s=100e6, loads=24),
    Deployment(partitions=100_000, topics=10_000, bytes_per_s=10e9, loads=24),
)


def table(deployments: Iterable[Deployment] = DEPLOYMENTS) -> str:
    """A Markdown table of the costs."""
    lines = [
        "| partitions | topics | MB/s | loads a day | cores | files a day | commits a day | requests a day | log a day |",  # noqa: E501 - a row
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one_day in deployments:
        cells = (
            f"{one_day.partitions:,}",
            f"{one_day.topics:,}",
            f"{one_day.bytes_per_s / 1e6:,.0f}",
            f"{one_day.loads}",
            f"{one_day.cpu_s / DAY_S:.2f}",
            f"{one_day.files:,}",
            f"{one_day.commits:,}",
            f"{one_day.requests:,}",
            f"{one_day.log_bytes / 1e6:,.0f} MB",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
