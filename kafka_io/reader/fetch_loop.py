"""The loop that reads a range of one partition: the broker prepares the next answer while this process decodes one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kafka_io.errors import Where
from kafka_io.reader.reader import FetchSizes
from kafka_io.records.decoded_batch import DecodedBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedChunk:
    """The whole batches or messages of one answer.

    Args:
        next_offset: the offset after the last one; the offset of the fetch if the answer contains none.
        needed_bytes: the size of the first one, so a fetch must ask for at least as much. It is exact if the answer
            contains its length; if not, it may be too low.
        batches: decodes the records while it is iterated.
    """

    next_offset: int
    needed_bytes: int
    batches: Iterator[DecodedBatch]


Pending = Callable[[], FetchedChunk | None]
"""Waits for the answer to a fetch that was sent ahead; None if it is of no use and must be fetched again."""


def read_pipelined(
    start: int,
    stop: int,
    sizes: FetchSizes,
    *,
    fetch: Callable[[int, int], FetchedChunk],
    send_ahead: Callable[[int, int], Pending | None],
    first: FetchedChunk | None = None,
) -> Iterator[DecodedBatch]:
    """Everything in `[start, stop)` as Arrow batches.

    The next fetch is sent before the last answer is decoded: its offset is known as soon as the headers of the answer
    are read. A fetch that was sent ahead is never tried again. If its answer is lost, `fetch` sends the same request
    with retries, when its turn comes.

    Args:
        start: the first offset.
        stop: the offset after the last one.
        sizes: the bytes of the first fetch, and of the largest one.
        fetch: fetches at (offset, size), with retries.
        send_ahead: sends a fetch at (offset, size) without waiting; None if it could not be sent.
        first: the answer to the first fetch, if there is one already.

    Raises:
        TooLarge: a message or batch is larger than the largest fetch.
    """
    offset, size, chunk = start, sizes.fetch_bytes, first
    while offset < stop:
        chunk = chunk or fetch(offset, size)
        # The answer has no whole batch: the broker cut it at the requested size (faults R02, R03). The same offset is
        # asked for again, with more bytes.
        if chunk.next_offset == offset:
            size, chunk = sizes.next_larger(size, chunk.needed_bytes, Where(offset=offset)), None
            continue
        # The order matters: the request for the next chunk must be sent before this chunk is decoded.
        pending = send_ahead(chunk.next_offset, size) if chunk.next_offset < stop else None
        yield from chunk.batches
        offset = chunk.next_offset
        chunk = pending() if pending else None
