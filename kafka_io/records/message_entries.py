"""Messages of formats 0 and 1 of a fetch answer to rows, also those compressed inside one.

In format 0 the inner messages have their own offsets; in format 1 theirs count from 0, and the outer message has the
last one's. With the time of the append, format 1 has it in the outer message alone (seed 004).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from isal import isal_zlib

from kafka_io.compression import MESSAGE_CODECS, Bytes
from kafka_io.errors import Corrupt, Unsupported, placing
from kafka_io.records.columns import Limits
from kafka_io.records.entries import REASONS, Entries, read_only
from kafka_io.records.filling import Filling
from kafka_io.records.kernels import messages as kernels
from kafka_io.records.kernels import outcomes
from kafka_io.records.kernels.messages import ANY_MAGIC, NO_TIMESTAMP
from kafka_io.records.layout import (
    APPEND_TIME,
    ENTRY_BYTES,
    LEAST_MESSAGE_BYTES,
    MAGIC_AT,
    MESSAGE_KEY_AT,
    MESSAGE_TIMESTAMP_AT,
    MODERN_CODEC_MASK,
)
from kafka_io.records.transactions import Aborted

# offset | length | crc | magic | attributes
_HEAD = Struct(">qiIBB")
_INT64 = Struct(">q")
_LENGTH = Struct(">i")
_GOES_ON = (outcomes.PAUSED, outcomes.WRAPPER)
_UNBOUNDED = 2**63 - 1


def read_messages(entries: Entries, filling: Filling, _aborted: Aborted, limits: Limits) -> Iterator[None]:
    """Decode messages until there is something else; at each step the rows are those of whole outer messages."""
    status = outcomes.PAUSED
    while status in _GOES_ON and not entries.ended:
        # One compressed message often follows another: to ask is cheaper than to hand the columns over in vain.
        if status == outcomes.PAUSED:
            status = _take_plain(entries, filling, limits.batch_bytes)
        if status == outcomes.WRAPPER:
            _take_compressed(entries, filling, limits.max_decompressed_bytes)
            is_next = kernels.is_compressed(entries.array, entries.at, entries.least, entries.asked.end - 1)
            status = outcomes.WRAPPER if is_next else outcomes.PAUSED
        yield


def _take_plain(entries: Entries, filling: Filling, most: int) -> int:
    """Messages from where `entries` stand up to one that is compressed; why that stopped."""
    asked, floor = entries.asked, entries.least
    left = len(entries.view) - entries.at
    filling.reserve(left // LEAST_MESSAGE_BYTES[0], left)
    status, at, last = kernels.decode(
        entries.array,
        entries.at,
        ANY_MAGIC,
        0,
        floor,
        asked.end - 1,
        NO_TIMESTAMP,
        filling.wanted,
        asked.at,
        asked.stop,
        asked.stop,
        most,
        filling.target,
    )
    if last > floor:
        entries.pass_to(last)
    if status == outcomes.PAST:
        entries.finish()
    entries.stand_at(at, status)
    return status


def _take_compressed(entries: Entries, filling: Filling, cap: int) -> None:
    """The messages inside the one where `entries` stand."""
    outer = _outer(entries.view[entries.at :])
    with placing(entries.where.at(outer.offset)):
        content = read_only(outer.open(cap))
        status, _, last = kernels.measure(content, 0)
        if status == outcomes.END:
            if not 0 <= last <= outer.offset:
                raise Corrupt(f"a compressed message whose last offset is {last}")
            filling.reserve(len(content) // LEAST_MESSAGE_BYTES[0], len(content))
            status, _, _ = kernels.decode(
                content,
                0,
                outer.magic,
                outer.offset - last if outer.magic else 0,
                entries.floor,
                outer.offset,
                outer.append_time,
                filling.wanted,
                entries.asked.at,
                entries.asked.stop,
                _UNBOUNDED,  # what lies behind the end is left out, but decoded whole it is or not at all
                _UNBOUNDED,
                filling.target,
            )
        if status != outcomes.END:
            raise Corrupt(f"inside a compressed message: {REASONS[status]}")
    entries.pass_to(outer.offset)
    entries.at += outer.size


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outer:
    """A compressed message, whose bounds a kernel has checked."""

    offset: int
    size: int
    magic: int
    attributes: int
    append_time: int
    crc: int
    content: memoryview

    def open(self, cap: int) -> Bytes:
        """The set inside.

        Raises:
            WireError: the message cannot be opened.
        """
        found = isal_zlib.crc32(self.content)
        if found != self.crc:
            raise Corrupt(f"wrong CRC: the message says {self.crc:08x}, its content has {found:08x}")
        number = self.attributes & MODERN_CODEC_MASK
        codec = MESSAGE_CODECS[self.magic].get(number)
        if codec is None:
            raise Unsupported(f"a message of magic {self.magic} compressed with codec {number}")
        at = MESSAGE_KEY_AT[self.magic] - MAGIC_AT
        (key_size,) = _LENGTH.unpack_from(self.content, at)
        at += _LENGTH.size + max(key_size, 0)
        if key_size < -1 or len(self.content) - at < _LENGTH.size:
            raise Corrupt(f"a key of {key_size} bytes in a compressed message of {self.size}")
        (size,) = _LENGTH.unpack_from(self.content, at)
        at += _LENGTH.size
        if size != len(self.content) - at:
            raise Corrupt(f"a set of {size} bytes in a compressed message that has {len(self.content) - at} for it")
        return codec.decompress(self.content[at:], cap)


def _outer(view: memoryview) -> _Outer:
    offset, length, crc, magic, attributes = _HEAD.unpack_from(view)
    appended = magic and attributes & APPEND_TIME
    size = ENTRY_BYTES + length
    return _Outer(
        offset=offset,
        size=size,
        magic=magic,
        attributes=attributes,
        append_time=_INT64.unpack_from(view, MESSAGE_TIMESTAMP_AT)[0] if appended else NO_TIMESTAMP,
        crc=crc,
        content=view[MAGIC_AT:size],
    )
