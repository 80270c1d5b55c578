"""Finds the offset at which a log can be read again after a message or batch that cannot be decoded.

The header of such an entry says where it ends, but the header can be damaged too. So its claim is believed only if the
next entry begins there. Otherwise the broker is asked for later offsets until it answers with an entry that can be
decoded.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError, LocatedError, WireError

_REFUSED = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRange:
    """The offsets `[start, stop)` that cannot be read; none if they can be read after all.

    `data` are the bytes that the broker gives for them. It is empty if they are above `max_fetch_bytes`.
    """

    start: int
    stop: int
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstEntry:
    """The first entry of the answer to a fetch at an offset.

    Args:
        readable: whether it can be decoded.
        base: its first offset, according to its header; -1 if that is not known.
        next_offset: the offset after it, according to its header; -1 if that is not known.
        data: its bytes, or all bytes of the answer if its header says more.
    """

    readable: bool
    base: int = -1
    next_offset: int = -1
    data: bytes = b""


Look = Callable[[int], FirstEntry]
"""Fetches at an offset, and decodes the first entry of the answer."""


NO_ENTRY = FirstEntry(readable=False)


def is_unreadable(error: LocatedError) -> bool:
    """Whether the error says that a message or batch at its offset cannot be read."""
    is_about_records = isinstance(error, WireError) or getattr(error, "code", None) == ErrorCode.CORRUPT_MESSAGE
    return is_about_records and error.where.offset is not None


def is_refusal(error: WireError | BrokerError) -> bool:
    """Whether the cause of the error may be the entry that was fetched: its size, or how the broker finds it."""
    return isinstance(error, WireError) or error.code in _REFUSED


def unreadable_range(start: int, stop: int, look: Look) -> UnreadableRange:
    """The unreadable offsets from `start` on, at most up to `stop`. It needs at most about 2 log2(stop - start) looks.

    Raises:
        KafkaIOError: the broker cannot be asked.
    """
    first = look(start)
    if first.readable:
        return UnreadableRange(start=start, stop=start)
    end = _claimed_end(first.next_offset, start, stop, look)
    return UnreadableRange(start=start, stop=_searched_end(start, stop, look) if end is None else end, data=first.data)


def _claimed_end(claimed: int, start: int, stop: int, look: Look) -> int | None:
    """The end that the header of the unreadable entry claims; None if no other entry confirms it."""
    if not start < claimed < stop:
        return stop if claimed == stop else None
    follower = look(claimed)
    if follower.base == claimed:
        return claimed
    # Compaction can leave a gap before the follower. These offsets count as unreadable, because nobody knows.
    if follower.readable and not look(claimed - 1).readable:
        return min(max(claimed, follower.base), stop)
    return None


def _searched_end(start: int, stop: int, look: Look) -> int:
    """The smallest offset that is found to be readable: by doubling the distance from `start`, then by bisection."""
    unreadable, distance = start, 1
    while start + distance < stop and not look(start + distance).readable:
        unreadable, distance = start + distance, 2 * distance
    readable = min(start + distance, stop)
    while readable - unreadable > 1:
        middle = (unreadable + readable) // 2
        if look(middle).readable:
            readable = middle
        else:
            unreadable = middle
    # The first entry that can be read may begin later: compaction can have removed the offsets before it.
    return min(max(readable, look(readable).base), stop) if readable < stop else stop
