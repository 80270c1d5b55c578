"""The floor: take the same fetch answers off the socket, decompress them, encode arrays that are there already."""

import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from kafka_io.compression import CODECS
from kafka_io.net.stream import Stream
from kafka_io.records import logs
from kafka_io.records.extent import first_entry_bytes
from kafka_io.records.layout import BATCH_ATTRIBUTES_AT, BATCH_BYTES, MODERN_CODEC_MASK
from pipelines.loading import fetch
from pipelines.loading.work import Work
from tests.bench.cases import Job
from tests.bench.peers import ours

_FETCH = (1).to_bytes(2, "big")
_SIZE_BYTES = 4
_ROOM = 64 * 1024 * 1024


@dataclass(slots=True)
class _Recorded:
    """What a load of ours did."""

    requests: list[bytes] = field(default_factory=list)
    compressed: list[tuple[int, bytes]] = field(default_factory=list)
    files: list[tuple[Work, list[pa.RecordBatch]]] = field(default_factory=list)


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The parts, recorded from a load."""
    recorded = _Recorded()
    first = replace(job, folder=job.folder.with_name("recorded"))
    with ours.ready(first) as load, _recording(recorded):
        load()
    yield lambda: _run(recorded, job)


def _run(recorded: _Recorded, job: Job) -> None:
    _drain(recorded.requests, job.bootstrap)
    for codec, records in recorded.compressed:
        CODECS[codec].decompress(records, _ROOM)
    for work, batches in recorded.files:
        with fetch.SliceFile(replace(work, table_uri=str(job.folder))) as file:
            for batch in batches:
                file.write(batch)


def _drain(requests: list[bytes], bootstrap: str) -> None:
    """Each answer into the same memory, the next one asked for before; as the loader does, but for looking at it."""
    host, port = bootstrap.split(":")
    space = memoryview(bytearray(_ROOM))
    waiting = deque(requests)
    with socket.create_connection((host, int(port))) as connected:
        connected.sendall(waiting.popleft())
        for _ in requests:
            size = _SIZE_BYTES
            _fill(connected, space[:size])
            size = int.from_bytes(space[:size], "big")
            if waiting:
                connected.sendall(waiting.popleft())
            _fill(connected, space[:size])


def _fill(connected: socket.socket, space: memoryview) -> None:
    while space:
        space = space[connected.recv_into(space) :]


@contextmanager
def _recording(recorded: _Recorded) -> Iterator[None]:
    send, feed = Stream.send, logs.Decoder.feed

    def recorded_send(self: Stream, data: bytes, deadline: Any) -> None:
        if data[_SIZE_BYTES:].startswith(_FETCH):
            recorded.requests.append(data)
        send(self, data, deadline)

    def recorded_feed(self: logs.Decoder, data: memoryview, *args: Any, **rest: Any) -> Any:
        recorded.compressed += _compressed(data)
        return feed(self, data, *args, **rest)

    class RecordedFile(fetch.SliceFile):
        def __init__(self, work: Work) -> None:
            super().__init__(work)
            self._batches: list[pa.RecordBatch] = []
            recorded.files.append((work, self._batches))

        def write(self, batch: pa.RecordBatch) -> None:
            self._batches.append(batch)
            super().write(batch)

    with ExitStack() as patches:
        patches.enter_context(patch.object(Stream, "send", recorded_send))
        patches.enter_context(patch.object(logs.Decoder, "feed", recorded_feed))
        patches.enter_context(patch.object(fetch, "SliceFile", RecordedFile))
        yield


def _compressed(data: memoryview) -> Iterator[tuple[int, bytes]]:
    """The codec and records of each batch that has one."""
    while (size := first_entry_bytes(data)) is not None and size <= len(data):
        codec = data[BATCH_ATTRIBUTES_AT + 1] & MODERN_CODEC_MASK
        if codec:
            yield codec, bytes(data[BATCH_BYTES:size])  # its memory will serve the next answer
        data = data[size:]
