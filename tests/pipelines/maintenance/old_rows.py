"""A small table whose rows were loaded on several days, and what a test sees of its rows."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.incarnations import incarnations
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.maintenance.retire import RetiredFiles, retire
from pipelines.verify.verify import verify
from tests.small_table import SmallTable

ONE = BrokerPartition(None, 0)
FIRST_DAY = date(2026, 1, 1)


def day(number: int) -> date:
    """The day with this number, from 0 on."""
    return FIRST_DAY + timedelta(days=number)


class DatedTable(SmallTable):
    """The table `clicks`, whose files are in the folders of the days on which their rows were loaded.

    Attributes:
        today: the number of the day on which rows are loaded now.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.today = 0

    def next_loading_time(self) -> int:
        """The loading time of the next file: a later one of the same day."""
        midnight = int(datetime.combine(day(self.today), datetime.min.time(), UTC).timestamp()) * 1_000_000
        return max(midnight, self._loaded_at) + 1

    def task(self, offsets: OffsetRange) -> FetchTask:
        """The task of a slice, with the folder of the day."""
        return replace(super().task(offsets), folder=f"date={day(self.today)}")

    def records(
        self, start: int, stop: int, *, partition: int = 0, without: Collection[int] = (), cause: str = "compacted"
    ) -> SliceFacts:
        """Write a slice of a topic from 0.8 on with a row for each offset, except for those `without` one."""
        offsets = [offset for offset in range(start, stop) if offset not in without]
        columns = {"offset": pa.array(offsets, pa.int64()), "value": pa.array([b"x"] * len(offsets))}
        facts = self.write_columns(
            OffsetRange(BrokerPartition(None, partition), start, stop), columns, broker=None, inner=None
        )
        missing = stop - start - len(offsets)
        return replace(facts, range=replace(facts.range, gaps={cause: missing} if missing else {}))

    def ranges(self, partition: int = 0) -> list[CommittedRange]:
        """The ranges of a partition that count."""
        [newest, *_] = incarnations(self.table.entries(self.table.snapshot()))
        return [part for part in newest.ranges if part.partition.partition == partition]

    def offsets(self, partition: int = 0) -> list[int]:
        """The offsets of the rows of a partition, in order."""
        rows = self.handle().to_pyarrow_table(columns=["partition", "offset"]).to_pylist()
        return sorted(row["offset"] for row in rows if row["partition"] == partition)

    def retire(self, before: int, *, dry_run: bool = False) -> RetiredFiles:
        """Retire the files of days before the one with this number."""
        return retire(self.table, day(before), dry_run=dry_run)

    def problems(self) -> tuple[str, ...]:
        """What `verify` says about the table."""
        return verify(self.table).problems
