"""HMAC-SHA256 [RFC 2104, FIPS 180-4] of many short values under one key.

SHA-256 hashes blocks of 64 bytes. The first block of an HMAC has only the key, so the state after it is computed once:
for the inner hash over the value, and for the outer hash over the digest of the inner one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_io.jit.compiling import device_function, kernel
from kafka_io.jit.scalars import ByteArray, Int32s, uint32

Words = npt.NDArray[np.uint32]

BLOCK = 64
DIGEST_WORDS = 8
WORK_SIZE = 64 + DIGEST_WORDS
"""The size of the array `work`: the words of a block, and after them the state of the hash."""
HASH_BYTES = 16
"""The bytes of the digest that a hash keeps."""
_LENGTH_BYTES = 8
_STATE = 64
_WORD = 0xFFFFFFFF
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def _first_primes(count: int) -> list[int]:
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return primes


def _root_bits(number: int, degree: int) -> int:
    """The first 32 bits of the fraction of a root, by whole numbers only."""
    low, high = 0, number << 32
    target = number << (32 * degree)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**degree <= target:
            low = middle
        else:
            high = middle - 1
    return low & _WORD


INITIAL_STATE: Words = np.array([_root_bits(prime, 2) for prime in _first_primes(DIGEST_WORDS)], np.uint32)
_CONSTANTS: Words = np.array([_root_bits(prime, 3) for prime in _first_primes(64)], np.uint32)


@device_function
def _rotated(word: Any, bits: int) -> Any:
    """The word with its bits moved to the right; those that leave it come in again on the left."""
    return np.uint32((word >> np.uint32(bits)) | (word << np.uint32(32 - bits)))


@device_function
def _compress(work: Words) -> None:
    """Add the block in `work` to the state in `work`."""
    # Words are uint32, and sums are made of `int`: without the compiler they must not overflow, and with it they become
    # sums of 32 bits, because only these are kept.
    for i in range(16, 64):
        early, late = work[i - 15], work[i - 2]
        first = _rotated(early, 7) ^ _rotated(early, 18) ^ (early >> np.uint32(3))
        second = _rotated(late, 17) ^ _rotated(late, 19) ^ (late >> np.uint32(10))
        work[i] = np.uint32((int(work[i - 16]) + int(work[i - 7]) + int(first) + int(second)) & _WORD)
    a, b, c, d = work[_STATE], work[_STATE + 1], work[_STATE + 2], work[_STATE + 3]
    e, f, g, h = work[_STATE + 4], work[_STATE + 5], work[_STATE + 6], work[_STATE + 7]
    for i in range(64):
        of_e = _rotated(e, 6) ^ _rotated(e, 11) ^ _rotated(e, 25)
        of_a = _rotated(a, 2) ^ _rotated(a, 13) ^ _rotated(a, 22)
        choice, majority = g ^ (e & (f ^ g)), (a & b) | (c & (a | b))
        first = int(h) + int(of_e) + int(choice) + int(_CONSTANTS[i]) + int(work[i])
        h, g, f, e = g, f, e, np.uint32((int(d) + first) & _WORD)
        d, c, b, a = c, b, a, np.uint32((first + int(of_a) + int(majority)) & _WORD)
    _add(work, 0, a)
    _add(work, 1, b)
    _add(work, 2, c)
    _add(work, 3, d)
    _add(work, 4, e)
    _add(work, 5, f)
    _add(work, 6, g)
    _add(work, 7, h)


@device_function
def _add(work: Words, index: int, word: Any) -> None:
    """Add a word to one of the state."""
    work[_STATE + index] = np.uint32((int(work[_STATE + index]) + int(word)) & _WORD)


@device_function
def _add_tail(data: ByteArray, start: int, end: int, size: int, work: Words) -> None:
    """Add the last bytes, fewer than a block, with the padding: a bit, zeros, and the size of the message in bits."""
    for i in range(16):
        work[i] = 0
    for i in range(end - start):
        work[i >> 2] |= np.uint32(int(data[start + i]) << (24 - 8 * (i & 3)))
    tail_size = end - start
    work[tail_size >> 2] |= np.uint32(0x80 << (24 - 8 * (tail_size & 3)))
    if tail_size >= BLOCK - _LENGTH_BYTES:
        _compress(work)
        for i in range(16):
            work[i] = 0
    work[14] = np.uint32(size >> 29)
    work[15] = np.uint32((size << 3) & _WORD)
    _compress(work)


@device_function
def _add_blocks(data: ByteArray, start: int, end: int, work: Words) -> int:
    """Add all whole blocks; returns the position after them."""
    while end - start >= BLOCK:
        for i in range(16):
            work[i] = np.uint32(uint32(data, start + 4 * i))
        _compress(work)
        start += BLOCK
    return start


@kernel
def state_after_block(block: ByteArray, state: Words, work: Words) -> None:
    """Set `state` to that of a hash whose first block is `block`.

    Args:
        block: 64 bytes.
        state: output, 8 words; before the call it is that of an empty hash.
        work: an array of WORK_SIZE words.
    """
    for i in range(DIGEST_WORDS):
        work[_STATE + i] = state[i]
    _add_blocks(block, 0, BLOCK, work)
    for i in range(DIGEST_WORDS):
        state[i] = work[_STATE + i]


@kernel
def hash_values(data: ByteArray, ends: Int32s, states: Words, prefix: ByteArray, work: Words, texts: ByteArray) -> None:
    """Write the hash of each value: the prefix, and 32 hexadecimal digits.

    Args:
        data: the values.
        ends: n + 1 positions in `data`: the start of the first value, and the end of each.
        states: the states after the block with the key, the inner one and then the outer one: 16 words.
        prefix: the bytes before each hash.
        work: an array of WORK_SIZE words.
        texts: output, the hashes one after the other.
    """
    position = 0
    for row in range(len(ends) - 1):
        start, end = int(ends[row]), int(ends[row + 1])
        for i in range(DIGEST_WORDS):
            work[_STATE + i] = states[i]
        tail = _add_blocks(data, start, end, work)
        _add_tail(data, tail, end, BLOCK + end - start, work)
        # The digest of the inner hash is half a block. What follows it is the padding, and its size with the key.
        for i in range(DIGEST_WORDS):
            work[i] = work[_STATE + i]
            work[DIGEST_WORDS + i] = 0
            work[_STATE + i] = states[DIGEST_WORDS + i]
        work[DIGEST_WORDS] = np.uint32(0x80000000)
        work[15] = np.uint32(8 * (BLOCK + BLOCK // 2))
        _compress(work)
        for i in range(len(prefix)):
            texts[position + i] = prefix[i]
        position += len(prefix)
        for i in range(HASH_BYTES * 2):
            texts[position + i] = _HEX[(int(work[_STATE + (i >> 3)]) >> (28 - 4 * (i & 7))) & 15]
        position += HASH_BYTES * 2
