"""Numbers that code gets wrong, as fields and as varints."""

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
    """Near `old`, at an edge, or anything; signed, of so many bits."""
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
    """As two's complement of so many bits has it."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


def varint(number: int, more: int = 0) -> bytes:
    """Zigzag, seven bits a byte, with `more` bytes than it needs."""
    rest = 2 * number if number >= 0 else -2 * number - 1
    out = bytearray()
    while rest > 0x7F or more:
        more -= rest <= 0x7F
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int] | None:
    """A varint and where it ends, if there is one."""
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + i + 1
    return None


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes flipped, put in, taken out, or overwritten; no structure is known."""
    out = bytearray(data)
    at = rng.randrange(len(out) + 1)
    kind = rng.randrange(5)
    if kind == 0 and out:
        out[at % len(out)] ^= 1 << rng.randrange(8)
    elif kind == 1:
        out[at:at] = rng.randbytes(rng.randrange(1, 9))
    elif kind == 2:
        del out[at : at + rng.randrange(1, 9)]
    elif kind == 3:
        out[at : at + 4] = odd_number(rng, 0, 32).to_bytes(4, "big", signed=True)
    else:
        del out[at:]
    return bytes(out)


def mutate_order(rng: random.Random, parts: list[bytes], more: list[bytes]) -> list[bytes]:
    """Parts dropped, doubled, moved, cut, or taken from `more`."""
    parts = list(parts)
    kind = rng.randrange(5)
    at = rng.randrange(len(parts)) if parts else 0
    if kind == 0:
        del parts[at : at + 1]
    elif kind == 1:
        parts[at:at] = parts[at : at + 1] * rng.choice((1, 1, 2, 50))
    elif kind == 2:
        rng.shuffle(parts)
    elif kind == 3 and parts:
        parts[at] = parts[at][: rng.randrange(len(parts[at]) + 1)]
    elif more:
        parts.insert(at, rng.choice(more))
    return parts
