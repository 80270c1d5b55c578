"""Frames of schema registries with the paths of Protobuf messages, whole and mutated, and an oracle that reads them."""

import random
from collections.abc import Iterator

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.framing import read_frames, read_message_paths
from tests.fuzz.sized import joined, parted
from tests.kafka_io.values.avro.making import framed, mutated, varint

_MOST_VALUES = 20
_MAX_LEVELS = 32
FRAME_BYTES, _LONG_FRAME_BYTES = 5, 9
_NEGATIVE = 0x80
_LONGEST_VARINT = 5


def mutated_frames(rng: random.Random) -> bytes:
    """Framed values; most have bytes changed."""
    return joined(_value(rng) for _ in range(rng.randrange(1, _MOST_VALUES)))


def _value(rng: random.Random) -> bytes:
    path = [rng.choice((0, 1, 2, 300)) for _ in range(rng.choice((0, 0, 1, 2, 32, 33)))]
    if path and not rng.randrange(8):
        path[rng.randrange(len(path))] = -1
    value = framed(rng.choice((0, 1, 2**31 - 1)), b"".join(map(varint, (len(path), *path))) + rng.randbytes(3))
    glue = bytes([rng.choice((1, 3)), rng.choice((0, 5))]) + rng.randbytes(16)
    value = rng.choice((value, value, value, glue))
    return mutated(rng, value) if rng.randrange(2) else value


def read_all(data: bytes, _limits: DecodeLimits) -> None:
    """Only read frames and paths."""
    values = pa.array(parted(data), pa.binary())
    read_message_paths(values, read_frames(values))


def check_frames(data: bytes, _rng: random.Random) -> str:
    """Check ids, paths, and where bodies begin, also in a slice of an array; returns "read" or "refused"."""
    bodies = parted(data)
    values = pa.array([b"before", *bodies, None], pa.binary()).slice(1)
    frames = read_frames(values)
    paths = read_message_paths(values, frames)
    content, starts = values.buffers()[2].to_pybytes(), [len(b"before")]
    for body in bodies:
        starts.append(starts[-1] + len(body))
    for row, body in enumerate(bodies):
        schema_id = schema_id_of(body)
        assert frames.ids[row] == (-1 if schema_id is None else schema_id), body
        read = None if schema_id is None else _path(body[FRAME_BYTES:])
        assert (paths.paths[paths.numbers[row]] if paths.numbers[row] >= 0 else None) == (read[0] if read else None)
        message = content[paths.starts[row] : starts[row + 1]] if paths.starts[row] >= 0 else None
        assert message == (read[1] if read else None), body
    of_frames, of_paths = ([failure.row for failure in read.failures] for read in (frames, paths))
    assert of_frames == [row for row, body in enumerate(bodies) if schema_id_of(body) is None]
    without_path = [row for row, body in enumerate(bodies) if row not in of_frames and not _path(body[FRAME_BYTES:])]
    assert of_paths == without_path
    assert frames.ids[len(bodies)] == paths.starts[len(bodies)] == -1
    return "refused" if of_frames or of_paths else "read"


def schema_id_of(value: bytes) -> int | None:
    """The id of a value's schema; None if the value has no valid frame. Ids begin at 1: with 0, an id has 8 bytes."""
    is_framed = len(value) >= FRAME_BYTES and value[0] == 0 and value[1] < _NEGATIVE
    id_ = int.from_bytes(value[1:FRAME_BYTES], "big")
    return id_ if is_framed and (id_ or len(value) < _LONG_FRAME_BYTES) else None


def _path(body: bytes) -> tuple[tuple[int, ...], bytes] | None:
    """The path and the message after it; None if the path is invalid."""
    numbers, position = list[int](), 0
    for number, position in _varints(body):
        numbers.append(number)
        if number < 0 or numbers[0] > _MAX_LEVELS:
            return None
        if len(numbers) == 1 + numbers[0]:
            return tuple(numbers[1:]) or (0,), body[position:]
    return None


def _varints(data: bytes) -> Iterator[tuple[int, int]]:
    """Zigzag varints of 32 bits, each with the position after it, up to one that is invalid."""
    position = 0
    while last := next((place for place, byte in enumerate(data[position:], 1) if byte < _NEGATIVE), 0):
        value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[position : position + last]))
        if last > _LONGEST_VARINT or value >> 32:
            return
        position += last
        yield (value >> 1) ^ -(value & 1), position
