"""Mutates message sets of 0.7 at all levels of nesting, and repairs most checksums."""

import random
import struct
import zlib
from contextlib import suppress

from kafka_io.compression import CODECS_07
from kafka_io.errors import KafkaIOError
from kafka_io.records.build import message
from tests.fuzz.numbers import mutate_bytes, mutate_order, odd_number
from tests.fuzz.streams import mutate_stream
from tests.kafka_io.records.v07_decoding import LOGS, log_bytes

_CAP = 1 << 20
_LARGEST_SEED = 20_000
_CODECS = (1, 2)


def messages_of(data: bytes) -> list[bytes]:
    """Split a message set into its messages; the last one may be incomplete."""
    parts = []
    while data:
        size = 4 + int.from_bytes(data[:4], "big", signed=True)
        size = size if 4 <= size <= len(data) else len(data)
        parts.append(data[:size])
        data = data[size:]
    return parts


SEEDS = [messages_of(data) for data in map(log_bytes, LOGS) if 0 < len(data) < _LARGEST_SEED]
_SPARE = [message_bytes for seed in SEEDS for message_bytes in seed[:5]]


def mutated_set(rng: random.Random) -> bytes:
    """Part of a log that a genuine broker wrote, with one to three mutations."""
    messages = list(rng.choice(SEEDS))
    start = rng.randrange(len(messages))
    messages = messages[start : start + 20]
    for _ in range(rng.choice((1, 1, 2, 3))):
        messages = _mutate(rng, messages, 0)
    return b"".join(messages)


def _mutate(rng: random.Random, messages: list[bytes], depth: int) -> list[bytes]:
    kind = rng.randrange(7)
    if kind == 0 or not messages:
        return mutate_order(rng, messages, _SPARE)
    position = rng.randrange(len(messages))
    if kind == 1:
        messages[position] = _repaired(rng, mutate_bytes(rng, messages[position]))
    elif kind == 2:
        messages[position] = _mutate_field(rng, messages[position])
    elif kind == 3:
        messages[position : position + 2] = [_wrapped(rng, messages[position : position + 2])]
    elif depth < 4:
        messages[position] = _mutate_content(rng, messages[position], depth)
    return messages


def _mutate_field(rng: random.Random, data: bytes) -> bytes:
    position, size = rng.choice(((0, 4), (4, 1), (5, 1), (6, 4)))
    old = int.from_bytes(data[position : position + size], "big", signed=True)
    new = odd_number(rng, old, 8 * size).to_bytes(size, "big", signed=True)
    return _repaired(rng, data[:position] + new + data[position + size :])


def _wrapped(rng: random.Random, messages: list[bytes]) -> bytes:
    data = b"".join(messages)
    for _ in range(rng.choice((1, 1, 2, 15, 17))):
        codec = rng.choice(_CODECS)
        data = message(bytes(CODECS_07[codec].compress(data)), attributes=codec)
    return data


def _mutate_content(rng: random.Random, data: bytes, depth: int) -> bytes:
    if len(data) < 10 or data[4] != 1 or data[5] & 3 not in _CODECS:
        return mutate_bytes(rng, data)
    inner = [data]
    with suppress(KafkaIOError):
        inner = messages_of(bytes(CODECS_07[data[5] & 3].decompress(data[10:], _CAP)))
    content = b"".join(_mutate(rng, inner, depth + 1))
    codec = rng.choice(_CODECS)
    stream = bytes(CODECS_07[codec].compress(content))
    if rng.randrange(4) == 0:
        stream = mutate_stream(rng, codec, content)
    return message(stream, attributes=data[5] & ~3 | codec)


def _repaired(rng: random.Random, data: bytes) -> bytes:
    """Usually the message with a correct CRC, and often with a correct length, too."""
    if len(data) < 10 or data[4] > 1 or rng.randrange(10) == 0:
        return data
    if rng.randrange(3):
        data = struct.pack(">i", len(data) - 4) + data[4:]
    position = 5 + data[4]
    return data[:position] + struct.pack(">I", zlib.crc32(data[position + 4 :])) + data[position + 4 :]
