"""A small table whose rows have event times, with the valid-through and the late rows that a test chooses."""

from collections.abc import Sequence
from types import MappingProxyType
from unittest.mock import patch

import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import CommitResult
from pipelines.fetch.slice_file import SliceFile
from pipelines.layout.rows import table_rows
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.event_time import EventTime, LateRows, PartitionTime
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.plan.valid_through import TimesOfLoad
from tests.small_table import SmallTable

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
PARTITION = BrokerPartition(0, 0)


class TimedTable(SmallTable):
    """The table of `clicks`; its file of each commit has rows with the times of the test."""

    def write_at(self, times_ms: Sequence[int | None]) -> SliceFacts:
        """Write a slice's file with a row for each of these times."""
        _, cursor = self.covered().get(PARTITION, (0, 0))
        offsets = OffsetRange(PARTITION, cursor, cursor + len(times_ms))
        self._loaded_at += 1
        with SliceFile(self.task(offsets)) as file:
            if times_ms:
                rows = pa.RecordBatch.from_pydict(
                    {
                        "offset": pa.array(range(offsets.start, offsets.stop), pa.int64()),
                        "inner": pa.array([0] * len(times_ms), pa.int32()),
                        "timestamp": pa.array(times_ms, pa.timestamp("ms", tz="UTC")),
                    }
                )
                file.write(
                    table_rows(rows, {"topic": "clicks", "broker": 0, "partition": 0, "loaded_at": self._loaded_at})
                )
        return SliceFacts(
            range=CommittedRange(
                offsets=offsets,
                rows=file.rows,
                loaded_at_us=self._loaded_at,
            ),
            files=file.files,
        )

    def load_at(
        self,
        times_ms: Sequence[int | None],
        *,
        through_ms: int | None = None,
        late: LateRows = MappingProxyType({}),
        moved_back_by: str = "",
    ) -> CommitResult:
        """Commit rows with these times; the commit records this valid-through and these late rows."""
        event_time = EventTime(
            column="timestamp",
            lateness_ms=0,
            valid_through_ms=through_ms,
            partitions={PARTITION: PartitionTime(proven_ms=through_ms)},
            late=dict(late),
            moved_back_by=moved_back_by,
        )
        facts = self.write_at(times_ms)
        with patch.object(TimesOfLoad, "after", lambda *_: event_time):
            return self.commit(facts)
