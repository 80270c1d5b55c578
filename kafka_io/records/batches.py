"""Where whole messages end, without decoding them; and what a broker checks before it stores a set.

A fetch answer is cut by bytes, not by messages (facts, 2): a tail is left for the next fetch and is never an error
(R02). A length that no message can have is one at once (R04, R26).
"""

from dataclasses import dataclass

from kafka_io.compression import Bytes
from kafka_io.errors import NOWHERE, Corrupt, Where, placing
from kafka_io.records.columns import DEFAULT_LIMITS, Limits, decode_v07
from kafka_io.records.kernels import outcomes
from kafka_io.records.kernels import sets as set_kernels
from kafka_io.records.layout import LENGTH_BYTES
from kafka_io.records.sets import MessageSet


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSet:
    """What a valid message set holds.

    Args:
        whole_bytes: without the cut tail.
        messages: also those inside compressed ones.
        largest_payload: bytes, of outer messages alone.
    """

    whole_bytes: int
    messages: int
    largest_payload: int


def first_length(data: Bytes) -> int | None:
    """The bytes that the first message says it takes, its length included; None when that is not there."""
    if len(data) < LENGTH_BYTES:
        return None
    return LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big", signed=True)


def whole_bytes(data: Bytes, *, base: int, where: Where = NOWHERE) -> int:
    """The bytes of the whole messages at the front of `data`, not looking into them.

    Args:
        data: 0.7 messages, the last one maybe cut.
        base: the offset of its first byte.
        where: the place of `data`; errors add the offset.

    Raises:
        Corrupt: a length that no message can have.
        Unsupported: a magic above 1.
    """
    whole, _ = _measure(data, base, where)
    return whole


def check_set(data: Bytes, *, limits: Limits = DEFAULT_LIMITS, where: Where = NOWHERE) -> CheckedSet:
    """What a 0.7 broker checks on produce (facts, 3): every message to the innermost; a cut tail passes.

    Raises:
        WireError: as `decode_v07` does, offsets counting from the set's first byte; Corrupt when there is a tail only.
    """
    whole, largest = _measure(data, 0, where)
    if len(data) and not whole:
        raise Corrupt(f"a message set of {len(data)} bytes that holds only a piece of a message", where.at(0))
    batches = decode_v07(memoryview(data)[:whole], base=0, limits=limits, where=where)
    messages = sum(decoded.batch.num_rows for decoded in batches)
    return CheckedSet(whole_bytes=whole, messages=messages, largest_payload=largest)


def _measure(data: Bytes, base: int, where: Where) -> tuple[int, int]:
    messages = MessageSet(data, base=base)
    status, messages.at, largest = set_kernels.measure(messages.array)
    if status not in (outcomes.END, outcomes.CUT):
        with placing(where.at(messages.offset)):
            raise messages.fault(status)
    return messages.at, largest
