"""Message sets of 0.7 to Arrow columns, without a Python object per message.

An Arrow batch ends only between outer messages, so a compressed message is decoded completely or not at all. Sets may
be nested; they are read with a stack instead of recursion (fault R19). One limit covers everything that an outer
message decompresses to, and columns grow only by the bytes at hand. So whatever a message claims, it costs at most
about three times its own bytes plus the limit (faults R15, R16).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kafka_io.compression import BytesLike
from kafka_io.errors import NOWHERE, Corrupt, TooLarge, Where, WireError
from kafka_io.records.column_builder import ColumnBuilder, ColumnLayout
from kafka_io.records.decoded_batch import DEFAULT_LIMITS, DecodedBatch, DecodeLimits
from kafka_io.records.kernels import status_codes
from kafka_io.records.kernels import v07_messages as v07_kernels
from kafka_io.records.layout import LENGTH_BYTES, MIN_LENGTH
from kafka_io.records.schema import SCHEMA_07
from kafka_io.records.v07.message_set import MessageSetReader07, measure

EMPTY = "empty"

_UNBOUNDED = 2**62
_LAYOUT = ColumnLayout(SCHEMA_07)
_MIN_MESSAGE_BYTES = LENGTH_BYTES + MIN_LENGTH
# Opening a compressed set takes as long as reading 4 KiB of a large one. So the size limit also limits the number of
# sets inside one message: one for each 4 KiB, plus _FREE_SETS.
_SET_BYTES = 4096
_FREE_SETS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSetSummary:
    """What a valid message set holds.

    Args:
        whole_bytes: size of the whole messages, without an incomplete last one.
        messages: number of messages, including those inside compressed ones.
        largest_payload: bytes of the largest payload among the outer messages.
    """

    whole_bytes: int
    messages: int
    largest_payload: int


def decode_v07(
    data: BytesLike, *, base: int, limits: DecodeLimits = DEFAULT_LIMITS, where: Where = NOWHERE
) -> Iterator[DecodedBatch]:
    """The messages of `data` as batches with the columns `schema.SCHEMA_07`.

    The last batch has `next_offset == base + len(data)`.

    Args:
        data: whole outer messages of 0.7 (see `v07_message_set.whole_bytes`).
        base: the offset of the first byte of `data`.
        limits: memory limits.
        where: the partition, for errors; they add the offset of the outermost message.

    Raises:
        Corrupt: an invalid length or checksum, or compressed data that cannot be decompressed.
        Unsupported: a magic above 1, or codec 3.
        TooLarge: a message exceeded a limit, which the message names.
    """
    limits.check_size(data, where)
    outer = MessageSetReader07(data, base=base)
    columns = ColumnBuilder(_LAYOUT)
    while outer.remaining:
        gaps = _fill(columns, outer, limits, where)
        yield DecodedBatch(columns.take_batch(), outer.offset, gaps)


def validate_message_set(
    data: BytesLike, *, limits: DecodeLimits = DEFAULT_LIMITS, where: Where = NOWHERE
) -> MessageSetSummary:
    """Check a produced set as a 0.7 broker does [kafka-0.7: Errors]: all messages, down to the innermost.

    An incomplete message at the end is accepted. A set of fewer bytes than a length is empty (fault F12).

    Raises:
        WireError: as for `decode_v07`, with offsets relative to the set; Corrupt if no message is complete.
    """
    whole, largest = measure(data, 0, where)
    if len(data) >= LENGTH_BYTES and not whole:
        raise Corrupt(f"a message set of {len(data)} bytes that holds only a piece of a message", where.at_offset(0))
    batches = decode_v07(memoryview(data)[:whole], base=0, limits=limits, where=where)
    messages = sum(decoded.batch.num_rows for decoded in batches)
    return MessageSetSummary(whole_bytes=whole, messages=messages, largest_payload=largest)


def warm() -> None:
    """Compile the kernels, or load them from numba's cache, before there is data waiting for them."""
    nothing = MessageSetReader07(b"", base=0)
    v07_kernels.measure(nothing.array)
    _decode_plain(ColumnBuilder(_LAYOUT), nothing, _UNBOUNDED)


def _fill(columns: ColumnBuilder, outer: MessageSetReader07, limits: DecodeLimits, where: Where) -> Counter[str]:
    """Decode outer messages until the columns are full or no message is left; returns the gaps."""
    gaps: Counter[str] = Counter()
    while True:
        status = _decode_plain(columns, outer, limits.batch_bytes)
        if status in (status_codes.END, status_codes.PAUSED):
            return gaps
        rows = columns.rows
        if status != status_codes.WRAPPER:
            raise outer.error(status).with_context(where.at_offset(outer.offset))
        offset = outer.offset
        try:
            _unwrap(columns, outer, limits)
        except WireError as error:  # a context manager costs as much as a small message
            raise error.with_context(where.at_offset(offset)) from error.__cause__
        if columns.rows == rows:
            gaps[EMPTY] += 1


def _decode_plain(columns: ColumnBuilder, messages: MessageSetReader07, max_bytes: int) -> int:
    """Decode plain messages until one is compressed or the columns hold `max_bytes`; the kernel's status."""
    columns.reserve(messages.remaining // _MIN_MESSAGE_BYTES, messages.remaining)
    arrays = columns.arrays
    outputs = (arrays.offsets, arrays.inner, arrays.value_ends, arrays.values, arrays.filled)
    status, messages.position = v07_kernels.decode(
        messages.array, messages.position, messages.base, messages.step, messages.first_row, max_bytes, *outputs
    )
    return status


def _unwrap(columns: ColumnBuilder, outer: MessageSetReader07, limits: DecodeLimits) -> None:
    """Decode everything inside the compressed message at the current position of `outer`.

    `stack` holds the sets that are being read, the innermost last.
    """
    cap = limits.max_decompressed_bytes
    sets_left = _FREE_SETS + cap // _SET_BYTES
    stack, status = [outer], status_codes.WRAPPER
    while True:
        top = stack[-1]
        if status == status_codes.WRAPPER:
            if len(stack) > limits.max_depth:
                raise TooLarge(f"a message compressed more than max_depth = {limits.max_depth} times")
            if not sets_left:
                raise TooLarge("more sets inside one message than max_decompressed_bytes leaves for them")
            sets_left -= 1
            stack.append(top.open_compressed(cap, row=columns.rows))
            cap -= len(stack[-1].view)
        elif status == status_codes.END or _is_dropped_tail(status, top):
            stack.pop()
        else:
            raise top.error(status)
        if stack[-1] is outer:
            return
        status = _decode_plain(columns, stack[-1], _UNBOUNDED)


def _is_dropped_tail(status: int, inside: MessageSetReader07) -> bool:
    """Whether a nested set ends with an incomplete message, which 0.7 consumers ignore.

    The iterator of Kafka 0.7 drops such a tail. It fails if the tail is all there is and its length field is complete.
    """
    return status == status_codes.CUT and (inside.position > 0 or inside.remaining < LENGTH_BYTES)
