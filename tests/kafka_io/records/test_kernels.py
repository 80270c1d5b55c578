"""The kernels of message formats 0 to 2 agree with the oracle; test_compiler_off.py repeats this without compiling."""

from collections.abc import Callable

import crcmod.predefined
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.jit import scalars
from kafka_io.jit.scalars import read_only
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.crc32c import crc32c
from kafka_io.records.record_set import RequestedOffsets
from tests.kafka_io.records.decoding import oracle_rows, read, read_rows

INT64 = st.integers(-(2**63), 2**63 - 1)
FIELD = st.none() | st.binary(max_size=12)
HEADERS = st.lists(st.tuples(st.binary(max_size=4), FIELD), max_size=3).map(tuple)
RECORDS = st.lists(st.builds(Record, timestamp=INT64, key=FIELD, value=FIELD, headers=HEADERS), min_size=1, max_size=6)
STEPS = st.lists(st.integers(1, 300), min_size=6, max_size=6)
Writer = Callable[[list[Record]], bytes]


def batch_of(codec: int, append_time: int | None) -> Writer:
    return lambda records: record_batch(records, codec=codec, append_time=append_time)


def messages_of(magic: int, codec: int, append_time: int | None) -> Writer:
    return lambda records: log_messages(records, magic=magic, codec=codec, append_time=append_time)


TIMES = st.none() | st.integers(0, 2**62)
WRITERS = (
    st.builds(batch_of, st.integers(0, 4), TIMES)
    | st.builds(messages_of, st.just(0), st.integers(0, 3), st.none())
    | st.builds(messages_of, st.just(1), st.integers(0, 3), TIMES)
)


def log_of(parts: list[tuple[Writer, list[Record], list[int]]], start: int) -> bytes:
    """A log of these parts; the offsets of their records grow by `steps`."""
    data = b""
    for write, records, steps in parts:
        placed = []
        for record, step in zip(records, steps, strict=False):
            start += step
            placed.append(
                Record(
                    offset=start,
                    timestamp=record.timestamp,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,
                )
            )
        data += write(placed)
    return data


LOGS = st.builds(log_of, st.lists(st.tuples(WRITERS, RECORDS, STEPS), max_size=5), st.integers(-1, 2**60))


# faults R25, R28
@pytest.mark.slow
@settings(deadline=None)
@given(data=LOGS, cut=st.integers(0, 30))
def test_any_log_gives_the_rows_of_the_oracle(data: bytes, cut: int) -> None:
    data = data[: len(data) - cut]
    assert read_rows(data) == oracle_rows(data)


# faults R20, R24
@pytest.mark.slow
@settings(deadline=None)
@given(data=LOGS, distances=st.tuples(st.integers(0, 3000), st.integers(1, 3000)))
def test_a_slice_between_any_two_offsets_has_exactly_the_rows_between_them(
    data: bytes, distances: tuple[int, int]
) -> None:
    rows = oracle_rows(data)
    start = min(rows[0][0] + distances[0], rows[-1][0]) if rows else 0
    # A broker begins with the entry that holds the offset.
    data = tail_from(data, start)
    stop = start + distances[1]
    assert read_rows(data, RequestedOffsets(start=start, stop=stop)) == [row for row in rows if start <= row[0] < stop]
    if rows and stop <= rows[-1][0]:
        assert read(data, RequestedOffsets(start=start, stop=stop))[-1].next_offset == stop


def tail_from(data: bytes, start: int) -> bytes:
    """`data` from the first entry on that ends at or after the offset `start`."""
    while data and last_offset(data) < start:
        data = data[12 + int.from_bytes(data[8:12], "big") :]
    return data


def last_offset(entry: bytes) -> int:
    delta = int.from_bytes(entry[23:27], "big") if entry[16] == 2 else 0
    return int.from_bytes(entry[:8], "big", signed=True) + delta


@settings(deadline=None)
@given(data=st.binary(max_size=100))
def test_crc32c_gives_the_checksums_of_crcmod(data: bytes) -> None:
    assert crc32c(memoryview(data)) == crcmod.predefined.mkCrcFun("crc-32c")(data)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 200])
def test_a_copy_equals_a_slice(size: int) -> None:
    source = read_only(bytes(range(250)))
    target = bytearray(300)
    view = read_only(target).copy()
    scalars.copy(source, 5, size, view, 3)
    assert bytes(view[3 : 3 + size]) == bytes(source[5 : 5 + size])
