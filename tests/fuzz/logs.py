"""Mutates logs of message formats 0 to 2 and repairs their checksums, so that decoding goes beyond the checksum."""

import random
import struct
from contextlib import suppress

from kafka_io.compression import CODECS, MESSAGE_CODECS
from kafka_io.errors import KafkaIOError
from tests.fuzz.numbers import mutate_bytes, mutate_order, odd_number, read_varint, signed, varint
from tests.fuzz.streams import mutate_stream
from tests.kafka_io.records.decoding import NAMES, golden, repaired

_CAP = 1 << 20
# Position and size of the fields of an entry. The CRC is missing, because it is repaired.
_COMMON = ((0, 8), (8, 4), (16, 1))
_FIELDS = {
    0: (*_COMMON, (17, 1), (18, 4)),
    1: (*_COMMON, (17, 1), (18, 8), (26, 4)),
    2: (*_COMMON, (12, 4), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4)),
}
_VALUE_AT = (22, 30)


def entries_of(data: bytes) -> list[bytes]:
    """Split a log into its entries; the last one may be incomplete."""
    parts = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big", signed=True)
        size = size if 12 <= size <= len(data) else len(data)
        parts.append(data[:size])
        data = data[size:]
    return parts


SEEDS = [entries_of(golden(name)) for name in NAMES]
_SPARE = [entry for entries in SEEDS for entry in entries]


def mutated_log(rng: random.Random) -> bytes:
    """A log that another client wrote, with one to three mutations."""
    entries = list(rng.choice(SEEDS))
    if rng.randrange(2):
        entries = renumbered(rng, [*entries, *rng.choice(SEEDS)])
    for _ in range(rng.choice((1, 1, 2, 3))):
        entries = _mutate(rng, entries)
    data = b"".join(entries)
    if rng.randrange(10) == 0:
        data = mutate_bytes(rng, data)
    return data if rng.randrange(10) == 0 else repaired(data)


def _mutate(rng: random.Random, entries: list[bytes]) -> list[bytes]:
    kind = rng.randrange(8)
    if kind == 0 or not entries:
        entries = mutate_order(rng, entries, _SPARE)
        return renumbered(rng, entries) if rng.randrange(2) else entries
    position = rng.randrange(len(entries))
    if kind == 1:
        entries[position] = mutate_bytes(rng, entries[position])
    elif kind in (2, 3):
        entries[position] = _mutate_field(rng, entries[position])
    else:
        entries[position] = _mutate_content(rng, entries[position])
    return entries


def renumbered(rng: random.Random, entries: list[bytes]) -> list[bytes]:
    """The entries with new offsets: each follows the one before, with a few gaps."""
    parts, next_offset = [], rng.choice((0, 0, 5, 1 << 40))
    for entry in entries:
        last = int.from_bytes(entry[23:27], "big", signed=True) if entry[16:17] == b"\2" else 0
        # A compressed message of format 0 or 1 has the offset of its last inner message.
        ahead = 0 if last or entry[16:17] == b"\2" else rng.choice((0, 19))
        offset = next_offset + ahead
        parts.append(struct.pack(">q", signed(offset, 64)) + entry[8:])
        next_offset = offset + max(last, 0) + 1 + rng.choice((0, 0, 3))
    return parts


def _mutate_field(rng: random.Random, entry: bytes) -> bytes:
    magic = entry[16] if len(entry) > 16 else 0
    position, size = rng.choice(_FIELDS.get(magic, _COMMON))
    old = int.from_bytes(entry[position : position + size], "big", signed=True)
    return (
        entry[:position] + odd_number(rng, old, 8 * size).to_bytes(size, "big", signed=True) + entry[position + size :]
    )


def _mutate_content(rng: random.Random, entry: bytes) -> bytes:
    """Mutate the records of a batch, or the messages inside a compressed message, and compress them again."""
    if len(entry) < 61:
        return mutate_bytes(rng, entry)
    if entry[16] == 2:
        return _mutate_batch(rng, entry)
    return _mutate_wrapper(rng, entry, entry[16]) if entry[16] in (0, 1) else entry


def _mutate_batch(rng: random.Random, entry: bytes) -> bytes:
    attributes, count = entry[22], int.from_bytes(entry[57:61], "big", signed=True)
    content = entry[61:]
    with suppress(KafkaIOError, KeyError):
        content = bytes(CODECS[attributes & 7].decompress(content, _CAP))
    content, more = _mutate_records(rng, content)
    codec = rng.randrange(5)
    stream = bytes(CODECS[codec].compress(content))
    if rng.randrange(4) == 0:
        stream = mutate_stream(rng, codec, content)
    if rng.randrange(3):
        count = signed(count + more, 32)
    # Some batches are transactional, have an append time, or are markers.
    bits = attributes & ~7 | codec | rng.choice((0, 0, 0, 8, 16, 48))
    head = entry[12:21] + bytes([entry[21], bits]) + entry[23:57]
    return entry[:8] + struct.pack(">i", 49 + len(stream)) + head + struct.pack(">i", count) + stream


def _mutate_records(rng: random.Random, content: bytes) -> tuple[bytes, int]:
    """The records with one of them mutated, or in another order, and the number of records that this adds."""
    records = _records_of(content)
    kind = rng.randrange(4)
    if kind == 0 or not records:
        parts = mutate_order(rng, records, [])
        return b"".join(parts), len(parts) - len(records)
    if kind == 1:
        return mutate_bytes(rng, content), 0
    # The end of the last record is bounded by the batch, not by a next record.
    position = rng.choice((0, len(records) - 1, rng.randrange(len(records))))
    records[position] = _mutate_record(rng, records[position])
    return b"".join(records), 0


def _records_of(content: bytes) -> list[bytes]:
    parts, position = [], 0
    while position < len(content):
        length = read_varint(content, position)
        end = length[0] + length[1] if length else 0
        end = end if position < end <= len(content) else len(content)
        parts.append(content[position:end])
        position = end
    return parts


def _mutate_record(rng: random.Random, record: bytes) -> bytes:
    """Change one varint of the record: its length, a delta, the size of a field, or the count of headers."""
    spans, position = [], 0
    for step in range(5):
        parsed = read_varint(record, position)
        if parsed is None:
            break
        spans.append((position, parsed[1], parsed[0]))
        # The attributes follow the length; the key and the value follow their sizes.
        position = parsed[1] + (1 if step == 0 else max(parsed[0], 0) if step > 2 else 0)
    if parsed := read_varint(record, position):
        spans.append((position, parsed[1], parsed[0]))
    if not spans:
        return mutate_bytes(rng, record)
    start, end, old = rng.choice(spans)
    new = varint(odd_number(rng, old, rng.choice((8, 32, 34, 64))), rng.choice((0, 0, 0, 1, 4, 9)))
    changed = record[:start] + new + record[end:]
    if start == 0 or rng.randrange(4) == 0:
        return changed
    # Correct the length, so that the changed field is parsed.
    length = read_varint(changed, 0)
    body = changed[length[1] :] if length else changed
    return varint(len(body)) + body


def _mutate_wrapper(rng: random.Random, entry: bytes, magic: int) -> bytes:
    value = entry[_VALUE_AT[magic] + 4 :]
    inner = [entry]
    with suppress(KafkaIOError, KeyError):
        inner = entries_of(bytes(MESSAGE_CODECS[magic][entry[17] & 7].decompress(value, _CAP)))
    inner = _mutate(rng, inner)
    content = b"".join(inner)
    content = repaired(content) if rng.randrange(10) else content
    codec = rng.choice((1, 2, 3))
    stream = MESSAGE_CODECS[magic][codec].compress(content)
    if rng.randrange(4) == 0:
        stream = mutate_stream(rng, codec, content)
    offset = int.from_bytes(entry[:8], "big", signed=True)
    last = int.from_bytes(inner[-1][:8], "big", signed=True) if inner else 0
    if rng.randrange(3) and offset < last:
        offset = last
    body = struct.pack(">iBB", 0, magic, entry[17] & ~7 | codec) + entry[18 : 26 if magic else 18]
    body += struct.pack(">ii", -1, len(stream)) + stream
    return struct.pack(">qi", offset, len(body)) + body
