"""How far the entries of a fetch answer reach, without decoding them: what to ask for next while they are decoded."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kafka_io.compression import Bytes
from kafka_io.errors import NOWHERE, Where
from kafka_io.records.entries import Asked, Entries
from kafka_io.records.kernels import batches, messages, outcomes
from kafka_io.records.layout import ENTRY_BYTES, ENTRY_LENGTH_AT

_MOST_BATCHES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The whole entries at the front of some bytes.

    Args:
        whole_bytes: what they take; behind is a tail that is cut.
        next_offset: behind the last of them, or the end of what was asked for; what was asked for when there is none.
    """

    whole_bytes: int
    next_offset: int


def first_entry_bytes(data: Bytes) -> int | None:
    """The bytes that the first entry says it takes; None when that is not there."""
    if len(data) < ENTRY_BYTES:
        return None
    return ENTRY_BYTES + int.from_bytes(data[ENTRY_LENGTH_AT:ENTRY_BYTES], "big", signed=True)


def extent_of(data: Bytes, asked: Asked, *, where: Where = NOWHERE) -> Extent:
    """What the headers in `data` say; only `logs.decode` looks whether it is true.

    Raises:
        Corrupt: a length or offset that cannot be right.
        Unsupported: a magic above 2.
    """
    entries = Entries(data, asked, where)
    while not entries.ended:
        _HOPS.get(entries.magic, _hop_batches)(entries)
    return Extent(whole_bytes=entries.at, next_offset=entries.next)


def _hop_batches(entries: Entries) -> None:
    table = np.empty((_MOST_BATCHES, batches.FIELDS), np.int64)
    status, at, count = batches.list_batches(
        entries.array, entries.at, entries.floor, entries.least, entries.asked.end, table
    )
    if count:
        entries.pass_to(int(table[count - 1, batches.LAST]))
    entries.stand_at(at, status)


def _hop_messages(entries: Entries) -> None:
    status, at, last = messages.measure(entries.array, entries.at)
    if at > entries.at:
        if not entries.least < last < entries.asked.end:
            status, at = outcomes.BAD_OFFSET, entries.at
        else:
            entries.pass_to(last)
    entries.stand_at(at, status)


_HOPS: dict[int | None, Callable[[Entries], None]] = {0: _hop_messages, 1: _hop_messages}
