"""Mutates numbers, bytes and lists: towards values that often reveal errors, such as limits of integer types."""

import random

_EDGES = (
    0,
    1,
    7,
    8,
    13,
    14,
    22,
    26,
    34,
    48,
    49,
    61,
    127,
    128,
    255,
    256,
    32767,
    65535,
    2**30,
    2**31 - 1,
    2**31,
    2**32 - 1,
)


def odd_number(rng: random.Random, old: int, bits: int) -> int:
    """A signed number with `bits` bits: near `old`, at a limit, or random."""
    kind = rng.randrange(5)
    if kind == 0:
        new = old + rng.choice((-2, -1, 1, 2))
    elif kind == 1:
        new = rng.choice(_EDGES) * rng.choice((1, -1))
    elif kind == 2:
        new = rng.choice((-1, 0, 1)) + (1 << bits - 1)
    elif kind == 3:
        new = old ^ 1 << rng.randrange(bits)
    else:
        new = rng.getrandbits(bits)
    return signed(new, bits)


def signed(number: int, bits: int) -> int:
    """The number as a two's complement with `bits` bits."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


def varint(number: int, more: int = 0) -> bytes:
    """Encode a zigzag varint, with `more` bytes more than it needs."""
    remaining = 2 * number if number >= 0 else -2 * number - 1
    out = bytearray()
    while remaining > 0x7F or more:
        more -= remaining <= 0x7F
        out.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    out.append(remaining)
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int] | None:
    """Decode a varint; returns it and the position after it, or None if the bytes are not a valid varint."""
    value = 0
    for i, byte in enumerate(data[position : position + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + i + 1
    return None


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Flip a bit, or insert, remove or overwrite bytes, at a random position."""
    out = bytearray(data)
    position = rng.randrange(len(out) + 1)
    kind = rng.randrange(5)
    if kind == 0 and out:
        out[position % len(out)] ^= 1 << rng.randrange(8)
    elif kind == 1:
        out[position:position] = rng.randbytes(rng.randrange(1, 9))
    elif kind == 2:
        del out[position : position + rng.randrange(1, 9)]
    elif kind == 3:
        out[position : position + 4] = odd_number(rng, 0, 32).to_bytes(4, "big", signed=True)
    else:
        del out[position:]
    return bytes(out)


def mutate_order(rng: random.Random, parts: list[bytes], more: list[bytes]) -> list[bytes]:
    """Drop, repeat, move or cut parts, or insert some of `more`."""
    parts = list(parts)
    kind = rng.randrange(5)
    position = rng.randrange(len(parts)) if parts else 0
    if kind == 0:
        del parts[position : position + 1]
    elif kind == 1:
        parts[position:position] = parts[position : position + 1] * rng.choice((1, 1, 2, 50))
    elif kind == 2:
        rng.shuffle(parts)
    elif kind == 3 and parts:
        parts[position] = parts[position][: rng.randrange(len(parts[position]) + 1)]
    elif more:
        parts.insert(position, rng.choice(more))
    return parts
