"""The rows of a table that count: those of its live ranges, told from others by their loading time."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Range, Topic
from pipelines.loading.live import lives
from pipelines.loading.rows import FILE_SCHEMA
from pipelines.loading.table_log import Snapshot, TableLog
from resources.errors import LakeUnavailable

_BATCH_ROWS = 65_536
_BATCHES_AHEAD = 2

Numbers = npt.NDArray[np.int64]


class TableRows:
    """The rows of one life of a topic, as one version of its table has them.

    `ranges` are those that count, by partition, in order of offset.
    """

    def __init__(self, log: TableLog, at: Snapshot, topic: Topic) -> None:
        self.ranges: Mapping[BrokerPartition, Sequence[Range]] = {
            id_: list(mine)
            for id_, mine in groupby(
                next((life.ranges for life in lives(log.entries(at)) if life.topic == topic), ()),
                key=lambda one: one.id,
            )
        }
        self._files: pads.FileSystemDataset = at.handle.to_pyarrow_dataset()
        self._uri = log.uri

    def of(self, id_: BrokerPartition) -> "LiveRows":
        """Those of one partition."""
        return LiveRows(self._files, self.ranges.get(id_, ()), uri=self._uri)


class LiveRows:
    """The rows of a partition whose live `ranges`, in order of offset and none over another, are given.

    Of the table's files only those are opened that may hold some. They are read in batches, so memory is bounded
    however long a range is.
    """

    def __init__(self, whole: pads.FileSystemDataset, ranges: Sequence[Range], *, uri: str) -> None:
        held = [one for one in ranges if one.start < one.stop]
        self._ranges = held
        self._starts, self._stops, self._loaded_us = (
            np.array([getattr(one, name) for one in held], np.int64) for name in ("start", "stop", "loaded_at_us")
        )
        self._uri = uri
        if held:
            own = (pads.field("partition") == held[0].partition) & _between(held[0].start, held[-1].stop)
            self._own = own if held[0].broker is None else own & (pads.field("broker") == held[0].broker)
        else:
            self._own = pads.scalar(value=False)
        self._files = pads.FileSystemDataset(
            list(whole.get_fragments(filter=self._own)), whole.schema, whole.format, whole.filesystem
        )

    def between(
        self, start: int, stop: int, columns: Sequence[str] = (), also: pads.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Those with offsets `[start, stop)`, in no order: `offset`, `inner`, and the `columns` asked for.

        Args:
            start: the first offset.
            stop: the offset behind the last.
            columns: names of FILE_SCHEMA.
            also: what else they must be.

        Raises:
            LakeUnavailable: a file cannot be read.
        """
        chosen = self._own & _between(start, stop)
        names = ["offset", "inner", *columns]
        with self._errors():
            for batch in self._files.to_batches(
                columns=[*names, "loaded_at"],
                filter=chosen if also is None else chosen & also,
                batch_size=_BATCH_ROWS,
                batch_readahead=_BATCHES_AHEAD,
                fragment_readahead=1,
            ):
                if batch.num_rows:
                    yield _as_in_files(self._live(batch).select(names))

    def counts(self, start: int, stop: int) -> list[tuple[Range, int]]:
        """The ranges that meet `[start, stop)`, and how many rows each has as a whole."""
        first, last = bisect_right(self._stops, start), bisect_left(self._starts, stop)
        met = self._ranges[first:last]
        rows = np.zeros(len(met), np.int64)
        for batch in self.between(met[0].start, met[-1].stop) if met else ():
            at = np.searchsorted(self._starts[first:last], numbers(batch.column("offset")), side="right") - 1
            rows += np.bincount(at, minlength=len(met))
        return list(zip(met, rows.tolist(), strict=True))

    def first_since(self, time_ms: int, *, below: int) -> int | None:
        """The least offset below `below` whose row is not older than that time, or has none."""
        time = pads.field("timestamp")
        since = pa.scalar(time_ms * 1000, FILE_SCHEMA.field("timestamp").type)
        found = self.between(0, below, also=(time >= since) | time.is_null())
        return min((_least(batch) for batch in found if batch.num_rows), default=None)

    def start_before(self, offset: int) -> int:
        """The greatest offset up to that one, at which a row or a range is known to start."""
        around = max((one.start for one in self._ranges if one.start <= offset), default=offset)
        found = self.between(around, offset + 1)
        return max((_greatest(batch) for batch in found if batch.num_rows), default=around)

    def start_after(self, offset: int) -> int:
        """The least offset from that one on, at which a row is known to start, or a range to end."""
        around = min((one.stop for one in self._ranges if offset <= one.stop), default=offset)
        found = self.between(offset, around)
        return min((_least(batch) for batch in found if batch.num_rows), default=around)

    def _live(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        offsets, loaded_us = numbers(batch.column("offset")), numbers(batch.column("loaded_at"))
        at = np.searchsorted(self._starts, offsets, side="right") - 1
        live = (at >= 0) & (offsets < self._stops[at]) & (loaded_us == self._loaded_us[at])
        return batch if live.all() else batch.filter(pa.array(live))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise LakeUnavailable(f"the table {self._uri} cannot be read: {error}") from error


def numbers(column: pa.Array) -> Numbers:
    """Integers or times as numpy has them, 0 where there is none."""
    found: Numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return found


def _between(start: int, stop: int) -> pads.Expression:
    return (pads.field("offset") >= start) & (pads.field("offset") < stop)


def _least(batch: pa.RecordBatch) -> int:
    return int(pc.min(batch.column("offset")).as_py())


def _greatest(batch: pa.RecordBatch) -> int:
    return int(pc.max(batch.column("offset")).as_py())


def _as_in_files(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What the table names otherwise, as the parts of its lists, goes by the names of files."""
    return batch.cast(pa.schema([FILE_SCHEMA.field(name) for name in batch.schema.names]))
