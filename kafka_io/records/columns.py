"""The typed face of the kernels: message sets to Arrow columns, no Python object per message.

A batch ends only between outer messages, so one holds a compressed message whole or not at all. Nested sets are read
with a stack, not by recursion (R19); what all sets inside one outer message decompress to counts against one cap, and
the columns grow only by what bytes at hand can hold: whatever a message claims, it costs at most about three times its
own bytes and the cap (R15, R16).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from kafka_io.compression import Bytes
from kafka_io.errors import NOWHERE, TooLarge, Where, WireError
from kafka_io.records.growing import Columns
from kafka_io.records.kernels import outcomes
from kafka_io.records.kernels import sets as set_kernels
from kafka_io.records.layout import LENGTH_BYTES
from kafka_io.records.sets import MessageSet

EMPTY = "empty"

_MIB = 1024 * 1024
_INT32_MAX = 2**31 - 1
_UNBOUNDED = 2**62
# Opening a set takes as long as reading so many bytes of a large one: so many sets a message may hold, and a few more.
_SET_BYTES = 4096
_FREE_SETS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What decoding may cost.

    Args:
        max_decompressed_bytes: the most that all sets compressed in one message, or one record batch, may hold.
        max_depth: how often a message of 0.7 may be compressed; later ones may once.
        batch_bytes: an Arrow batch ends behind the message or record batch with which its columns reach this size.

    Raises:
        ValueError: a limit below 1, or a batch that could outgrow the 32-bit ends of Arrow's binary values.

    >>> Limits(max_decompressed_bytes=1024).max_depth
    16
    """

    max_decompressed_bytes: int = 256 * _MIB
    max_depth: int = 16
    batch_bytes: int = 32 * _MIB

    def __post_init__(self) -> None:
        if min(self.max_decompressed_bytes, self.max_depth, self.batch_bytes) < 1:
            raise ValueError("a limit below 1")
        if self.batch_bytes + self.max_decompressed_bytes > _INT32_MAX:
            raise ValueError("batch_bytes and max_decompressed_bytes together must stay below 2 GiB")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows, the offset behind the last message that was read for them (the next to read), and offsets with no row.

    `gaps` counts these by cause. In 0.7 there is one: EMPTY, a compressed message around nothing. Later there are
    "compacted", "control" (the markers of transactions) and "aborted".

    >>> [decoded] = decode_v07(message_set([b"one", b"two"]), base=0)
    >>> decoded.batch.num_rows, decoded.next_offset, dict(decoded.gaps)
    (2, 26, {})
    """

    batch: pa.RecordBatch
    next_offset: int
    gaps: Mapping[str, int]


def decode_v07(data: Bytes, *, base: int, limits: Limits = DEFAULT_LIMITS, where: Where = NOWHERE) -> Iterator[Decoded]:
    """The messages of `data` as batches (growing.SCHEMA_07); the last one's `next_offset` is `base + len(data)`.

    Args:
        data: whole outer messages of 0.7 (see `batches.whole_bytes`).
        base: the offset of its first byte.
        limits: what it may cost.
        where: the place of `data`; errors add the offset of the outermost message.

    Raises:
        Corrupt: a length or checksum that cannot be right, or a compressed message that cannot be read.
        Unsupported: a magic above 1, or codec 3.
        TooLarge: a message passed a limit, which the sentence names.
    """
    if len(data) + limits.batch_bytes > _INT32_MAX:
        raise TooLarge(f"{len(data)} bytes to decode at once: with batch_bytes they must stay below 2 GiB", where)
    outer = MessageSet(data, base=base)
    while outer.left:
        columns = Columns()
        gaps = _fill(columns, outer, limits, where)
        yield Decoded(columns.to_batch(), outer.offset, gaps)


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    nothing = MessageSet(b"", base=0)
    set_kernels.measure(nothing.array)
    Columns().take(nothing, most=_UNBOUNDED)


def _fill(columns: Columns, outer: MessageSet, limits: Limits, where: Where) -> Counter[str]:
    """Decode outer messages until the columns are full or there are no more; the gaps met on the way."""
    gaps: Counter[str] = Counter()
    while True:
        status = columns.take(outer, most=limits.batch_bytes)
        if status in (outcomes.END, outcomes.PAUSED):
            return gaps
        rows = columns.rows
        if status != outcomes.WRAPPER:
            raise outer.fault(status).placed(where.at(outer.offset))
        offset = outer.offset
        try:
            _unwrap(columns, outer, limits)
        except WireError as error:  # `placing` takes as long as a small message
            raise error.placed(where.at(offset)) from error.__cause__
        if columns.rows == rows:
            gaps[EMPTY] += 1


def _unwrap(columns: Columns, outer: MessageSet, limits: Limits) -> None:
    """Decode all that is compressed in the outer message at hand; the sets being read stand on a stack."""
    cap = limits.max_decompressed_bytes
    sets_left = _FREE_SETS + cap // _SET_BYTES
    stack = [outer]
    status = outcomes.WRAPPER
    while True:
        top = stack[-1]
        if status == outcomes.WRAPPER:
            if len(stack) > limits.max_depth:
                raise TooLarge(f"a message compressed more than max_depth = {limits.max_depth} times")
            if not sets_left:
                raise TooLarge("more sets inside one message than max_decompressed_bytes leaves for them")
            sets_left -= 1
            inside = top.take_compressed(cap, row=columns.rows)
            cap -= len(inside.view)
            stack.append(inside)
        elif status == outcomes.END or _is_dropped_tail(status, top):
            stack.pop()
        else:
            raise top.fault(status)
        if stack[-1] is outer:
            return
        status = columns.take(stack[-1], most=_UNBOUNDED)


def _is_dropped_tail(status: int, inside: MessageSet) -> bool:
    """A compressed set may end in a cut message, which nobody has ever read; but not be nothing else.

    The genuine iterator drops the tail, and throws when there was no message before it and its length is there.
    """
    return status == outcomes.CUT and (inside.at > 0 or inside.left < LENGTH_BYTES)
