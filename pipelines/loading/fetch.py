"""The worker's part: fetch a group of slices and write each as one Parquet file, under a name no other attempt has.

It runs in Spark's Python workers through `mapInArrow`. What goes wrong with a slice comes back as that slice's failure,
so that its siblings are not lost; a worker that dies is Spark's to start again, and its files are nobody's.
"""

import time
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import groupby
from typing import Any, Self

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kafka_io.client.source import Source
from kafka_io.model import Broker
from kafka_io.records.columns import Decoded
from pipelines.loading.rows import FILE_SCHEMA, parquet_options, table_rows
from pipelines.loading.stats import file_stats
from pipelines.loading.steps import step
from pipelines.loading.work import Facts, Failure, Work
from resources import durable
from resources.lake import filesystem

WORK_SCHEMA = "task int, work string"
FACTS_SCHEMA = "facts string"
_ROW_GROUP_BYTES = 30 * 1024 * 1024  # what the decoder gives at once; smaller batches wait for more
_ROW_GROUP_ROWS = 1_000_000


def fetch_slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`mapInArrow`'s function: rows of WORK_SCHEMA in, rows of FACTS_SCHEMA out, one each."""
    step("fetch began")
    works = [Work.from_json(text) for batch in batches for text in batch.column("work").to_pylist()]
    by_source = sorted(works, key=lambda work: (work.source.brokers, work.span.id, work.start))
    for source, group in groupby(by_source, key=lambda work: work.source):
        for facts in _fetch_group(source, list(group)):
            yield pa.RecordBatch.from_pydict({"facts": [facts.to_json()]})
            step("facts sent")


def _fetch_group(source: Source, works: Sequence[Work]) -> Iterator[Facts]:
    with closing(source.open()) as reader:
        for work, batches in zip(works, reader.read([work.span for work in works]), strict=True):
            began = time.monotonic()
            try:
                yield replace(_fetch_one(work, batches, began), source=_name(reader.serving(work.span)))
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this slice and is told as such
                failure = Failure.of(error, work.where, traceback.format_exc())
                yield Facts(
                    broker=work.broker, partition=work.partition, start=work.start, stop=work.stop, failure=failure
                )


def _name(broker: Broker | None) -> str:
    return f"{broker.id}@{broker.address}" if broker else ""


def _fetch_one(work: Work, batches: Iterator[Decoded], began: float) -> Facts:
    constants: dict[str, object] = {
        "topic": work.topic,
        "broker": work.broker,
        "partition": work.partition,
        "loaded_at": work.loaded_at_us,
    }
    output = SliceFile(work)
    gaps: Counter[str] = Counter()
    size = 0
    with output:
        for decoded in batches:
            step("batch fetched")
            gaps.update(decoded.gaps)
            size += decoded.batch.nbytes
            if decoded.batch.num_rows:
                output.write(table_rows(decoded.batch, constants))
    return Facts(
        broker=work.broker,
        partition=work.partition,
        start=work.start,
        stop=work.stop,
        rows=output.rows,
        bytes=size if work.broker is None else work.stop - work.start,
        path=output.path if output.rows else None,
        size=output.size,
        stats=output.stats,
        gaps=dict(gaps),
        seconds=time.monotonic() - began,
        loaded_at_us=work.loaded_at_us,
    )


class SliceFile:
    """The Parquet file of one slice. It is opened at the first row: a slice of gaps alone has none."""

    def __init__(self, work: Work) -> None:
        self._files = filesystem(work.table_uri, work.options)
        self._codec = work.parquet_codec
        self._local = durable.local_path(work.table_uri)
        name = f"{work.span.id}-{work.start:020d}-{work.stop:020d}-{uuid.uuid4().hex}.parquet"
        self.path = f"{work.folder}/{name}"
        self.rows = 0
        self.size = 0
        self.stats: Mapping[str, Any] = {}
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self._closing = ExitStack()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in the order of their offsets; they are written a row group at a time."""
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= _ROW_GROUP_BYTES:
            self._write_row_group()

    def _write_row_group(self) -> None:
        if self._writer is None:
            self._writer = self._open()
        self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=_ROW_GROUP_ROWS)
        self._waiting, self._waiting_bytes = [], 0
        step("file written")

    def _open(self) -> pq.ParquetWriter:
        step("file opened")
        folder = self.path.rpartition("/")[0]
        self._files.create_dir(folder, recursive=True)
        stream = self._closing.enter_context(self._files.open_output_stream(self.path))
        writer = pq.ParquetWriter(
            stream,
            FILE_SCHEMA,
            metadata_collector=self._footers,
            **parquet_options(self._codec),
        )
        return self._closing.enter_context(writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        """Make the file whole. After an error what is there stays: no commit will name it, housekeeping collects it."""
        with self._closing:
            if kind is None and self._waiting:
                self._write_row_group()
        if kind is None and self.rows:
            info = self._files.get_file_info(self.path)
            assert info.type == pafs.FileType.File
            self.size = info.size
            [footer] = self._footers
            self.stats = file_stats(footer)
            step("file closed")
            if self._local is not None:
                durable.sync_below(self._local, self._local / self.path)
                step("file synced")
