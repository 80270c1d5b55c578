"""The loop that reads a range of one partition: the broker prepares the next answer while this process decodes one."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from kafka_io.records.decoded_batch import DecodedBatch


class Fetched(Protocol):
    """What one fetch brought."""

    @property
    def next_offset(self) -> int:
        """The offset after the last whole batch or message; the offset of the fetch if there is no whole one."""
        ...


F = TypeVar("F", bound=Fetched)

Pending = Callable[[], F | None]
"""Waits for the answer to a fetch that was sent ahead; None if it is of no use and must be fetched again."""


def read_pipelined(
    start: int,
    stop: int,
    size: int,
    *,
    fetch: Callable[[int, int], F],
    send_ahead: Callable[[int, int], Pending[F] | None],
    decode: Callable[[F], Iterator[DecodedBatch]],
    larger_size: Callable[[F, int], int],
    first: F | None = None,
) -> Iterator[DecodedBatch]:
    """Everything in `[start, stop)` as Arrow batches.

    The next fetch is sent before the last answer is decoded: its offset is known as soon as the headers of the answer
    are read. A fetch that was sent ahead is never tried again. If its answer is lost, `fetch` sends the same request
    with retries, when its turn comes.

    Args:
        start: the first offset.
        stop: the offset after the last one.
        size: bytes of the first fetch.
        fetch: fetches at (offset, size), with retries.
        send_ahead: sends a fetch at (offset, size) without waiting; None if it could not be sent.
        decode: the batches of an answer.
        larger_size: the size to fetch next, after an answer to a fetch of some size without a whole batch or message.
        first: an answer to the first fetch, if there is one already.
    """
    offset, fetched = start, first
    while offset < stop:
        fetched = fetched or fetch(offset, size)
        if fetched.next_offset == offset:
            size, fetched = larger_size(fetched, size), None
            continue
        pending = send_ahead(fetched.next_offset, size) if fetched.next_offset < stop else None
        yield from decode(fetched)
        offset = fetched.next_offset
        fetched = pending() if pending else None
