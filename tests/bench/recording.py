"""Records the work of ours for one slice: its fetch requests, the compressed bytes of the answers, and its rows.

Everything here replaces parts of the product for the length of a `with` block.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from kafka_io.compression import CODECS
from kafka_io.net.stream import Stream
from kafka_io.records import decoder
from kafka_io.records.header_scan import first_entry_bytes
from kafka_io.records.layout import BATCH_ATTRIBUTES_AT, BATCH_BYTES, MODERN_CODEC_MASK
from pipelines.fetch import fetch, slice_file
from pipelines.fetch.fetch_task import FetchTask
from resources.stores import durable
from tests.bench.comparison import Timer

SIZE_BYTES = 4
"""Every request and answer begins with its size."""
_FETCH = (1).to_bytes(2, "big")  # the API key, the first field after the size


@dataclass(slots=True)
class RecordedSlice:
    """The requests, the compressed batches and the rows of one slice of ours.

    Args:
        requests: the fetch requests as they were sent, each with its size prefix.
        compressed: codec number and compressed records of each batch.
        batches: the rows that were written to the file.
    """

    work: FetchTask
    requests: list[bytes] = field(default_factory=list)
    compressed: list[tuple[int, bytes]] = field(default_factory=list)
    batches: list[pa.RecordBatch] = field(default_factory=list)


@contextmanager
def recording(recorded: RecordedSlice) -> Iterator[None]:
    """Record the slice that is fetched inside the block."""
    send, feed = Stream.send, decoder.Decoder.feed

    def recorded_send(self: Stream, data: bytes, deadline: Any) -> None:
        if data[SIZE_BYTES:].startswith(_FETCH):
            recorded.requests.append(data)
        send(self, data, deadline)

    def recorded_feed(self: decoder.Decoder, data: memoryview, *args: Any, **options: Any) -> Any:
        recorded.compressed += _compressed_batches(data)
        return feed(self, data, *args, **options)

    class RecordedFile(slice_file.SliceFile):
        def write(self, batch: pa.RecordBatch) -> None:
            recorded.batches.append(batch)
            super().write(batch)

    with ExitStack() as patches:
        patches.enter_context(patch.object(Stream, "send", recorded_send))
        patches.enter_context(patch.object(decoder.Decoder, "feed", recorded_feed))
        patches.enter_context(patch.object(fetch, "SliceFile", RecordedFile))
        yield


def _compressed_batches(data: memoryview) -> Iterator[tuple[int, bytes]]:
    """The codec and records of each compressed record batch in a fetch answer."""
    while (size := first_entry_bytes(data)) is not None and size <= len(data):
        codec = data[BATCH_ATTRIBUTES_AT + 1] & MODERN_CODEC_MASK
        if codec:
            yield codec, bytes(data[BATCH_BYTES:size])  # a copy: the reader reuses this memory for the next answer
        data = data[size:]


@contextmanager
def timed_inside(timer: Timer) -> Iterator[None]:
    """Time the calls of ours that the limit also makes: receive, decompress, encode and write, and fsync."""
    codecs = {
        number: replace(codec, decompress_into=timer.around(codec.decompress_into)) for number, codec in CODECS.items()
    }
    with ExitStack() as patches:
        patches.enter_context(patch.dict(CODECS, codecs))
        for owner, name in (
            (Stream, "receive_into"),
            (slice_file.SliceFile, "flush"),
            (durable, "sync_below"),
        ):
            patches.enter_context(patch.object(owner, name, timer.around(getattr(owner, name))))
        yield
