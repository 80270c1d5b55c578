"""Decoding never needs more memory than three times the sum of the input size and the decompression limit.

See faults R15, R16, R17.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import snappy

from kafka_io.compression import CODECS, MESSAGE_CODECS
from kafka_io.records.build import Record, log_messages, message, message_set, record_batch
from tests.fuzz.numbers import varint
from tests.kafka_io.records.decoding import batch_around, changed

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
CAP = 16 * MIB
TIMES = 3


def records_of(size: int, count: int) -> list[Record]:
    """`count` records, each with a value of `size` bytes that compresses to about a third."""
    rng = random.Random(size)
    words = [rng.randbytes(3).hex().encode() for _ in range(500)]
    text = b" ".join(rng.choice(words) for _ in range(20_000))
    starts = [rng.randrange(len(text) - size) for _ in range(count)]
    return [
        Record(offset=offset, timestamp=offset, key=b"key-%d" % offset, value=text[start : start + size])
        for offset, start in enumerate(starts)
    ]


def valid_logs() -> Iterator[tuple[str, bytes]]:
    """Valid logs with their names: a batch or message of nearly the limit, or many small ones."""
    for name, records in (("long", records_of(1000, 13_000)), ("short", records_of(40, 120_000))):
        content = record_batch(records)[61:]
        for number, codec in CODECS.items():
            yield f"v2-{name}-{codec.name}", of_batch(content, number, len(records))
            parts = (records[first : first + 20] for first in range(0, 20_000, 20))
            yield f"v2-many-{name}-{codec.name}", b"".join(record_batch(part, codec=number) for part in parts if part)
        for magic, codecs in enumerate(MESSAGE_CODECS):
            inner_messages = log_messages(records, magic=magic)
            for number, codec in codecs.items():
                outer = Record(offset=len(records) - 1, value=codec.compress(inner_messages))
                data = log_messages([outer], magic=magic)
                yield f"v{magic}-{name}-{codec.name}", changed(data, 17, bytes([number]))
        inner_messages = message_set([record.value or b"" for record in records])
        for number in (1, 2):
            yield (
                f"07-{name}-{CODECS[number].name}",
                message(bytes(CODECS[number].compress(inner_messages)), attributes=number),
            )


def of_batch(content: bytes, codec: int, count: int) -> bytes:
    """A batch with these bytes as its records, and with `count` as the number of records in its header."""
    return batch_around(bytes(CODECS[codec].compress(content)), count=count, last_delta=2**31 - 2, codec=codec)


def worst_logs() -> Iterator[tuple[str, bytes]]:
    """Logs with their names that need the most memory for their size, or whose headers claim a large size."""
    for codec in (1, 2, 3, 4):
        yield f"v2-bomb-{codec}", of_batch(bytes(8 * CAP), codec, 1)
        yield f"v2-zeros-{codec}", of_batch(bytes(CAP), codec, 2**31 - 1)
    # A record here takes seven bytes or a few more, but its row in the columns takes far more.
    for name, count in (("most", CAP // 9), ("fewer", CAP // 33)):
        yield f"v2-{name}-records", of_batch(shortest_records(count), 4, count)
    for name, header in (("empty", b"\0\1"), ("not-text", b"\2\xff\1")):
        times = (CAP - 20) // len(header)
        body = b"\0\0\0\1\1" + varint(times) + header * times
        yield f"v2-{name}-headers", of_batch(varint(len(body)) + body, 4, 1)
        times = CAP // 40
        body = b"\0\0\0\1\1" + varint(times) + header * times
        yield f"v2-fewer-{name}-headers", of_batch(varint(len(body)) + body, 4, 1)
    for name, size in (("long", CAP - 100), ("shorter", CAP // 2 - 100)):
        body = b"\0\0\0\1\1\2" + varint(size) + b"\xff" * size + b"\1"
        yield f"v2-a-{name}-key-that-is-not-text", of_batch(varint(len(body)) + body, 4, 1)
    large = Record(offset=1, value=bytes(CAP - 100))
    yield "v2-large-after-small", record_batch([Record()], codec=4) + record_batch([large], codec=4)
    claim = b"\xff\xff\xff\x0f" + snappy.compress(b"x")[1:]
    yield "v2-snappy-claim", batch_around(claim, count=1, last_delta=0, codec=2)
    yield "v2-count", batch_around(b"", count=2**31 - 1, last_delta=2**31 - 2)
    for codec in (1, 2):
        yield f"07-bomb-{codec}", message(bytes(CODECS[codec].compress(bytes(8 * CAP))), attributes=codec)
        empty = message(b"") * (CAP // 10)
        yield f"07-empty-{codec}", message(bytes(CODECS[codec].compress(empty)), attributes=codec)
        nothing = message(bytes(CODECS[codec].compress(b"")), attributes=codec)
        many = bytes(CODECS[codec].compress(nothing * (CAP // len(nothing))))
        yield f"07-many-sets-{codec}", message(many, attributes=codec)


def shortest_records(count: int) -> bytes:
    """The shortest records with the offset deltas from 0 on. Two million of them one by one would take seconds."""
    parts = []
    for size in range(1, 5):  # of the delta as a zigzag varint, of which each byte has 7 bits
        first, stop = (1 << 7 * (size - 1)) // 2, min((1 << 7 * size) // 2, count)
        zigzag = 2 * np.arange(first, max(first, stop))
        records = np.zeros((len(zigzag), size + 6), np.uint8)
        records[:, 0] = 2 * (size + 5)  # the length of the rest, also as a zigzag varint
        for number in range(size):
            records[:, 3 + number] = zigzag >> 7 * number & 0x7F | (0x80 if number + 1 < size else 0)
        records[:, 3 + size : 5 + size] = 1  # there is neither a key nor a value
        parts.append(records.tobytes())
    return b"".join(parts)


def test_many_shortest_records_are_the_same_as_single_ones() -> None:
    def record(delta: int) -> bytes:
        body = b"\0\0" + varint(delta) + b"\1\1\0"
        return varint(len(body)) + body

    assert shortest_records(9000) == b"".join(map(record, range(9000)))
    assert shortest_records(2**20 + 9).endswith(b"".join(map(record, range(2**20 - 9, 2**20 + 9))))


@pytest.mark.slow
def test_memory_is_bounded_for_valid_and_for_corrupt_logs(tmp_path: Path) -> None:
    names = []
    for name, data in (*valid_logs(), *worst_logs()):
        (tmp_path / name).write_bytes(data)
        names.append(name)
    run = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.cost", str(CAP), *(str(tmp_path / name) for name in names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = [line.split() for line in run.stdout.splitlines()]
    assert [name for name, *_ in lines] == names
    sizes = {name: (tmp_path / name).stat().st_size for name in names}
    above = {name: int(grown) / (sizes[name] + CAP) for name, _, grown in lines}
    assert {name: times for name, times in above.items() if times > TIMES} == {}
