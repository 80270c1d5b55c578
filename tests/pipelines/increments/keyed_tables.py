"""Small tables whose rows have keys, values, tombstones and times; and what their state tables must have."""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.state_tables.state_table import state_output
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_state import StateSettings
from tests.pipelines.increments.table_histories import TableHistory

BY_KEY = TopicOptions(state=StateSettings(key=("key",)))
PLACE = ("broker", "partition", "offset", "inner", "loaded_at")
Row = dict[str, Any]


class KeyedHistory(TableHistory):
    """A table to which something random happens. Few keys are in both partitions, and times go back now and then.

    Attributes:
        keys: how many keys there are.
        clock_error_us: by how much the clocks of loaders are wrong: loading times go back and forth.
        incarnations: the incarnation of the rows by their loading time.
    """

    def __init__(self, root: Path, random: Random, keys: int = 12, clock_error_us: int = 0) -> None:
        super().__init__(root, random)
        self.keys = keys
        self.clock_error_us = clock_error_us
        self.incarnations: dict[int, str] = {}

    def next_loading_time(self) -> int:
        """See SmallTable. No two loads have the same."""
        if not self.clock_error_us:
            return super().next_loading_time()
        return next(
            time_us
            for _ in range(1000)
            if (time_us := self.random.randint(1, self.clock_error_us)) not in self.incarnations
        )

    def write(
        self, start: int, stop: int, *, partition: int = 0, rows: int | None = None, without: Collection[int] = ()
    ) -> SliceFacts:
        """Write a slice's file. Each offset has a row with a random key."""
        offsets = [offset for offset in range(start, stop, 10) if offset not in without][:rows]
        records = [self._record(partition) for _ in offsets]
        return self.write_records(start, stop, partition, dict(zip(offsets, records, strict=True)))

    def _record(self, partition: int) -> Row:
        number = self.random.randrange(self.keys)
        # Two of three keys stay in one partition, as with every partitioner of producers.
        number += partition if number % 3 and number % 2 != partition else 0
        time_ms = self.random.choice([None, *range(1000, 2000, 50)])
        value = self.random.choice([None, *(f"v{self.random.random()}".encode() for _ in range(4))])
        return {"key": None if number == 0 else f"k{number}".encode(), "value": value, "timestamp": time_ms}

    def write_records(self, start: int, stop: int, partition: int, records: dict[int, Row]) -> SliceFacts:
        """Write a slice's file with these records by offset."""
        rows = list(records.values())
        others = {
            "key": pa.array([row["key"] for row in rows], pa.binary()),
            "timestamp": pa.array([row.get("timestamp") for row in rows], pa.int64()),
        }
        values = {offset: row["value"] for offset, row in records.items()}
        facts = self.write_values(start, stop, partition, values, others)
        self.incarnations[self._loaded_at] = self.topic.incarnation
        return facts

    def _restart(self) -> None:
        super()._restart()
        if self._loaded_at:
            self.incarnations[self._loaded_at] = self.topic.incarnation

    def load(self, *records: tuple[str | None, Any], partition: int = 0, time_ms: int | None = None) -> None:
        """Load records with these keys and values after those of the partition."""
        _, start = self.covered().get(BrokerPartition(0, partition), (0, 0))
        rows = {
            start + 10 * number: {
                "key": None if key is None else key.encode(),
                "value": None if value is None else value.encode(),
                "timestamp": time_ms,
            }
            for number, (key, value) in enumerate(records)
        }
        self.commit(self.write_records(start, start + 10 * len(records), partition, rows))

    def expected(self) -> list[Row]:
        """The state table, computed in plain Python from the definition on the page."""
        by_log: dict[bytes, dict[tuple[int, int], list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in rows_of(self.handle()):
            if row["key"] is not None:
                incarnation = int(self.incarnations[row["loaded_at"]])
                by_log[row["key"]][incarnation, row["partition"]].append(row)
        return sorted((newest(logs) for logs in by_log.values()), key=lambda row: bytes(row["key"]))

    def state(self) -> list[Row]:
        """The rows of the state table."""
        return state_rows(self)


def newest(logs: dict[tuple[int, int], list[Row]]) -> Row:
    """The newest row of a key, from its rows by incarnation and partition."""
    last_incarnation = max(incarnation for incarnation, _ in logs)
    candidates = []
    for (incarnation, partition), rows in logs.items():
        if incarnation == last_incarnation:
            times = [row["timestamp"] for row in rows if row["timestamp"] is not None]
            latest = max(times, default=None)
            last_row = max(rows, key=lambda row: row["offset"])
            position = None if latest is None else {"time_us": latest}
            row = {**last_row, "_deleted": last_row["value"] is None, "_state_position": position}
            candidates.append(((latest is not None, latest or 0, partition), row))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def rows_of(handle: DeltaTable) -> list[Row]:
    """The rows of a table, with times as numbers."""
    table = handle.to_pyarrow_table()
    for name in ("timestamp", "loaded_at"):
        number = table.schema.get_field_index(name)
        table = table.set_column(number, name, table.column(name).cast(pa.int64()))
    return list(table.to_pylist())


def state_rows(history: KeyedHistory) -> list[Row]:
    """The rows of the state table, by key."""
    handle = state_output(history.table).open()
    return [] if handle is None else sorted(rows_of(handle), key=lambda row: bytes(row["key"]))
