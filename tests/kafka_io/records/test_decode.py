"""Every offset of the range that was asked for is a row or a gap, whatever formats its entries have."""

import struct
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from kafka_io.errors import Corrupt, TooLarge, Where
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.decoder import decode, warm
from kafka_io.records.kernels import legacy_messages as message_kernels
from kafka_io.records.kernels import record_batches as batch_kernels
from kafka_io.records.kernels.column_arrays import ROWS
from kafka_io.records.layout import CONTROL, TRANSACTIONAL
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.schema import COLUMNS, SCHEMA
from tests.kafka_io.records.decoding import golden, one_column, read, read_rows, repaired

MIB = 1024 * 1024
WHERE = Where(cluster="new", topic="clicks", partition=3)


def batch(*offsets: int, codec: int = 0, attributes: int = 0, producer: int = -1) -> bytes:
    records = [Record(offset=offset, value=b"%d" % offset) for offset in offsets]
    return record_batch(records, codec=codec, attributes=attributes, producer=(producer, 0, 0))


def emptied(base: int, last: int) -> bytes:
    """An empty batch: compaction keeps it for the sequence number of its producer."""
    return record_batch([], span=(base, last))


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    """A control batch that ends a transaction."""
    record = Record(offset=offset, key=struct.pack(">hh", 0, commit), value=bytes(6))
    return record_batch([record], attributes=CONTROL | TRANSACTIONAL, producer=(producer, 0, -1))


def offsets(
    data: bytes, requested: RequestedOffsets | None = None, aborted: tuple[tuple[int, int], ...] = ()
) -> list[int]:
    return [row[0] for row in read_rows(data, requested or RequestedOffsets(start=0), aborted=aborted)]


def gaps(
    data: bytes, requested: RequestedOffsets | None = None, aborted: tuple[tuple[int, int], ...] = ()
) -> dict[str, int]:
    (decoded,) = read(data, requested or RequestedOffsets(start=0), aborted=aborted)
    return dict(decoded.gaps)


def test_the_schema_is_that_of_sparks_own_source() -> None:
    names = ["offset", "timestamp", "timestampType", "key", "value", "headers"]
    assert list(COLUMNS) == SCHEMA.names == names
    for data in (batch(0), log_messages([Record()], magic=0), log_messages([Record()], magic=1, codec=1)):
        assert one_column(data).schema == SCHEMA


# fault R28
def test_formats_may_follow_each_other() -> None:
    data = b"".join(
        (
            log_messages([Record(offset=0), Record(offset=1)], magic=0, codec=1),
            log_messages([Record(offset=2)], magic=0),
            log_messages([Record(offset=3)], magic=1),
            log_messages([Record(offset=5), Record(offset=6)], magic=1, codec=3),
            batch(7, 8, codec=4),
            log_messages([Record(offset=9)], magic=1),
            batch(10),
        )
    )
    assert offsets(data) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert gaps(data) == {"hole": 1}


def test_data_without_entries_gives_no_batch() -> None:
    assert read(b"", RequestedOffsets(start=7)) == []


# fault R02
@pytest.mark.parametrize("name", ["v0-none-kafka-python", "v1-gzip-kafka-python", "v2-zstd-librdkafka"])
def test_an_incomplete_last_entry_is_left_for_the_next_fetch(name: str) -> None:
    data = golden(name)
    whole = read_rows(data)
    for size in range(len(data)):
        rows = read_rows(data[:size])
        assert rows == whole[: len(rows)]


# faults R20, R24
def test_compacted_offsets_are_a_gap() -> None:
    assert gaps(batch(3, 5, 9) + batch(12), RequestedOffsets(start=1)) == {"compacted": 1 + 3, "hole": 2 + 2}
    (decoded,) = read(emptied(10, 19), RequestedOffsets(start=12))
    assert (decoded.batch.num_rows, decoded.next_offset, dict(decoded.gaps)) == (0, 20, {"compacted": 8})
    assert offsets(emptied(0, 4) + batch(5) + emptied(6, 9), RequestedOffsets(start=2)) == [5]


# faults P03, R24
@pytest.mark.parametrize(
    "parts",
    [
        (batch(2, 3), batch(7), batch(9, codec=1)),
        (log_messages([Record(offset=2), Record(offset=3)], magic=0), batch(7), batch(9)),
        (
            log_messages([Record(offset=2), Record(offset=3)], magic=1, codec=1),
            log_messages([Record(offset=7), Record(offset=9)], magic=1, codec=1),
        ),
        (log_messages([Record(offset=offset) for offset in (2, 3, 7, 9)], magic=0, codec=1),),
    ],
)
def test_holes_between_entries_are_counted_with_their_place(parts: tuple[bytes, ...]) -> None:
    (decoded,) = read(b"".join(parts), RequestedOffsets(start=1, stop=12))
    assert (decoded.batch.num_rows, decoded.next_offset, decoded.holes) == (4, 10, (1, 9))
    assert decoded.gaps == {"hole": 1 + 3 + 1}
    (decoded,) = read(b"".join(parts), RequestedOffsets(start=2, stop=6))
    assert (decoded.batch.num_rows, decoded.next_offset, decoded.holes) == (2, 6, (4, 6))
    (decoded,) = read(b"".join(parts), RequestedOffsets(start=2, stop=4))
    assert (decoded.batch.num_rows, decoded.holes, decoded.gaps) == (2, None, {})


def test_the_offset_of_a_compressed_message_without_a_message_inside_is_a_hole() -> None:
    """The outer message of format 0 may keep a higher offset than its last one inside."""
    data = bytearray(log_messages([Record(offset=0), Record(offset=1)], magic=0, codec=1))
    data[:8] = (4).to_bytes(8, "big")
    (decoded,) = read(bytes(data))
    assert (decoded.batch.num_rows, decoded.gaps, decoded.holes) == (2, {"hole": 3}, (2, 5))


# fault P03
@pytest.mark.parametrize(
    ("data", "kernels"),
    [
        (batch(*range(10)), batch_kernels),
        (batch(*range(10), codec=4), batch_kernels),
        (batch(*range(0, 20, 2)), batch_kernels),
        (log_messages([Record(offset=offset) for offset in range(10)], magic=1), message_kernels),
        (log_messages([Record(offset=offset) for offset in range(10)], magic=0, codec=1), message_kernels),
    ],
)
def test_a_decoder_that_loses_a_row_is_an_error_and_not_a_gap(
    data: bytes, kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    intact = kernels.decode

    def losing(*args: Any) -> Any:
        result = intact(*args)
        args[-1].filled[ROWS] -= args[-1].filled[ROWS] // 7
        return result

    monkeypatch.setattr(kernels, "decode", losing)
    with pytest.raises(Corrupt, match="9 records were decoded") as raised:
        read(data, where=WHERE)
    assert raised.value.where == WHERE.at_offset(0)


# fault R21
def test_the_offset_of_a_last_transaction_marker_is_decoded() -> None:
    (decoded,) = read(batch(0, 1, attributes=TRANSACTIONAL, producer=7) + marker(2, 7, commit=True))
    assert (decoded.batch.num_rows, decoded.next_offset, dict(decoded.gaps)) == (2, 3, {"control": 1})


# fault R22
@pytest.mark.parametrize("codec", range(5))
def test_only_committed_records_are_read(codec: int) -> None:
    def part(producer: int, *places: int) -> bytes:
        return batch(*places, codec=codec, attributes=TRANSACTIONAL, producer=producer)

    data = b"".join(
        (
            part(1, 0, 1),
            part(2, 2),
            batch(3, codec=codec),
            marker(4, 1, commit=False),
            part(1, 5),
            part(2, 6, 7),
            marker(8, 2, commit=False),
            marker(9, 1, commit=True),
            part(2, 10),
            marker(11, 2, commit=True),
        )
    )
    aborted = ((2, 2), (1, 0))
    assert offsets(data, aborted=aborted) == [3, 5, 10]
    assert gaps(data, aborted=aborted) == {"aborted": 5, "control": 4}
    assert offsets(data) == [0, 1, 2, 3, 5, 6, 7, 10]


def test_an_aborted_transaction_that_began_before_the_fetch_is_left_out() -> None:
    data = batch(5, 6, attributes=TRANSACTIONAL, producer=1) + marker(7, 1, commit=False) + batch(8, producer=1)
    assert offsets(data, RequestedOffsets(start=6), aborted=((1, 2),)) == [8]
    assert gaps(data, RequestedOffsets(start=6), aborted=((1, 2),)) == {"aborted": 1, "control": 1}


def test_a_commit_marker_does_not_end_an_aborted_transaction() -> None:
    """Only the marker of an abort does, as in Kafka's own consumer."""
    first, second = (batch(offset, attributes=TRANSACTIONAL, producer=1) for offset in (0, 2))
    data = first + marker(1, 1, commit=True) + second + marker(3, 1, commit=False) + batch(4, producer=1)
    assert offsets(data, aborted=((1, 0),)) == [4]
    assert gaps(data, aborted=((1, 0),)) == {"aborted": 2, "control": 2}


def test_a_producer_without_transactions_is_never_left_out() -> None:
    assert offsets(batch(0, producer=1), aborted=((1, 0),)) == [0]


def test_a_transaction_marker_without_a_valid_key_is_corrupt() -> None:
    bad = record_batch([Record(offset=1, key=b"x")], attributes=CONTROL | TRANSACTIONAL, producer=(1, 0, -1))
    with pytest.raises(Corrupt, match="marker") as raised:
        read(batch(0) + bad, aborted=((1, 0),), where=WHERE)
    assert raised.value.where == WHERE.at_offset(1)


def test_gaps_do_not_depend_on_the_edges_of_slices() -> None:
    data = batch(2, 5, 6) + marker(7, 1, commit=True) + emptied(8, 11) + batch(14, 15, codec=4)
    whole = gaps(data)
    for cut in range(1, 16):
        (before_cut,) = read(data, RequestedOffsets(start=0, stop=cut))
        assert before_cut.next_offset == cut
        ends = (2 + 4, 7, 11, 15)
        skipped = sum(end < cut for end in ends)
        parts = [batch(2, 5, 6), marker(7, 1, commit=True), emptied(8, 11), batch(14, 15, codec=4)]
        (after_cut,) = read(b"".join(parts[skipped:]), RequestedOffsets(start=cut))
        assert {
            cause: before_cut.gaps[cause] + after_cut.gaps[cause] for cause in ("compacted", "control", "hole")
        } == whole


def test_entries_after_the_slice_are_not_verified() -> None:
    broken = bytearray(batch(10, 11))
    broken[-1] ^= 1
    for stop in (2, 9, 10):
        (decoded,) = read(batch(0, 1) + broken, RequestedOffsets(start=0, stop=stop))
        assert (decoded.batch.num_rows, decoded.next_offset) == (2, stop)
    for magic in (0, 1, 2):
        first = batch(0, 1) if magic == 2 else log_messages([Record(offset=0), Record(offset=1)], magic=magic)
        (decoded,) = read(first + bytes(50), RequestedOffsets(start=0, stop=2))
        assert (decoded.batch.num_rows, decoded.next_offset) == (2, 2)


@pytest.mark.parametrize("columns", [("value",), ("headers", "offset"), ("timestampType", "timestamp"), ("key",)])
@pytest.mark.parametrize("name", ["v0-gzip-kafka-python", "v1-none-kafka-python", "v2-lz4-kafka-python"])
def test_selected_columns_equal_the_same_columns_of_a_full_read(name: str, columns: tuple[str, ...]) -> None:
    chosen = one_column(golden(name), columns)
    chosen.validate(full=True)
    assert chosen.equals(one_column(golden(name)).select(columns))


@pytest.mark.parametrize("columns", [(), ("values",), ("key", "key")])
def test_unknown_columns_are_refused(columns: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="columns must be some of"):
        list(decode(b"", RequestedOffsets(start=0), columns=columns))


@pytest.mark.parametrize(("start", "stop", "end"), [(-1, 5, 5), (5, 5, 9), (5, 9, 4)])
def test_an_invalid_range_is_refused(start: int, stop: int, end: int) -> None:
    with pytest.raises(ValueError, match="requested offsets need"):
        RequestedOffsets(start=start, stop=stop, high_watermark=end)


@pytest.mark.parametrize("codec", [0, 3])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_end_between_entries_when_they_are_full(magic: int, codec: int) -> None:
    records = [Record(offset=offset, value=b"x" * 100) for offset in range(20)]
    pairs = [records[first : first + 2] for first in range(0, 20, 2)]
    write = record_batch if magic == 2 else lambda pair, codec: log_messages(pair, magic=magic, codec=codec)
    data = b"".join(write(pair, codec=codec) for pair in pairs)
    batches = read(data, limits=DecodeLimits(batch_bytes=500))
    assert len(batches) > 2
    assert [row for decoded in batches for row in decoded.batch.column("offset").to_pylist()] == list(range(20))
    if codec:
        assert all(decoded.next_offset % 2 == 0 for decoded in batches)


def test_columns_grow_over_any_number_of_batches() -> None:
    headers = ((b"name", b"content"), (b"none", None))
    data = b"".join(
        record_batch(
            [
                Record(offset=first + i, key=b"k" * (i % 7), value=None if i % 5 else b"v" * i, headers=headers)
                for i in range(100)
            ],
            codec=first // 100 % 5,
        )
        for first in range(0, 30_000, 100)
    )
    (decoded,) = read(data)
    decoded.batch.validate(full=True)
    assert decoded.batch.column("key").null_count == 0
    assert decoded.batch.column("value").null_count == 24_000
    values = pa.compute.binary_length(decoded.batch.column("value")).drop_null().to_pylist()
    assert values == [i for _ in range(300) for i in range(0, 100, 5)]
    assert decoded.batch.column("headers").flatten().field("value").null_count == 30_000


# fault R25
def test_timestamps_are_exact() -> None:
    times = [-1, 0, 2**63 - 1, -(2**63), 1_700_000_000_000]
    records = [Record(offset=offset, timestamp=time) for offset, time in enumerate(times)]
    for data in (record_batch(records), log_messages(records, magic=1)):
        assert [row[1:3] for row in read_rows(data)] == [(time, 0) for time in times]
    assert {row[1:3] for row in read_rows(record_batch(records, append_time=99))} == {(99, 1)}
    assert {row[1:3] for row in read_rows(log_messages(records, magic=1, codec=2, append_time=99))} == {(99, 1)}
    assert {row[1:3] for row in read_rows(log_messages(records, magic=0))} == {(-1, -1)}


# fault R25
@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"", ""),
        (b"trace", "trace"),
        ("\u00e4".encode(), "\u00e4"),
        (b"\xff\x00", "\ufffdff00"),
        ("\ufffdff00".encode(), "\ufffdefbfbd66663030"),
    ],
)
def test_the_text_of_a_header_key_determines_its_bytes(key: bytes, text: str) -> None:
    record = Record(headers=((key, b"1"), (b"next", None), (key, b"")))
    assert [row[5] for row in read_rows(record_batch([record]))] == [[(text, b"1"), ("next", None), (text, b"")]]


# fault R25
def test_null_and_empty_differ() -> None:
    records = [Record(offset=0, key=None, value=b""), Record(offset=1, key=b"", value=None)]
    for data in (record_batch(records), log_messages(records, magic=0), log_messages(records, magic=1, codec=1)):
        assert [row[3:5] for row in read_rows(data)] == [(None, b""), (b"", None)]


def test_a_batch_stays_valid_after_its_input_and_decoder_are_gone() -> None:
    first = one_column(record_batch([Record(value=b"first" * 1000)]))
    kept = first.column("value")
    del first
    for number in range(20):
        one_column(record_batch([Record(value=b"%d" % number * 5000)]))
    assert kept.to_pylist() == [b"first" * 1000]


# fault R17
def test_a_batch_above_the_limit_can_be_read_after_the_named_limit_is_raised() -> None:
    data = record_batch([Record(offset=offset, value=bytes(100_000)) for offset in range(20)], codec=4)
    with pytest.raises(TooLarge, match="max_decompressed_bytes") as raised:
        read(data, limits=DecodeLimits(max_decompressed_bytes=MIB), where=WHERE)
    assert raised.value.where == WHERE.at_offset(0)
    assert len(read_rows(data, limits=DecodeLimits(max_decompressed_bytes=3 * MIB))) == 20


def test_the_kernels_of_later_formats_can_be_warmed_without_data() -> None:
    warm()
    assert offsets(batch(0)) == [0]


# faults R20, R24
@pytest.mark.parametrize("codec", [0, 4])
def test_records_that_compaction_removed_from_either_end_of_a_batch_are_gaps(codec: int) -> None:
    data = record_batch([Record(offset=13), Record(offset=15)], span=(10, 19), codec=codec)
    assert offsets(data, RequestedOffsets(start=10)) == [13, 15]
    assert gaps(data, RequestedOffsets(start=10)) == {"compacted": 8}
    (behind,) = read(data, RequestedOffsets(start=16))
    assert (behind.batch.num_rows, behind.next_offset, dict(behind.gaps)) == (0, 20, {"compacted": 4})
    (before,) = read(data, RequestedOffsets(start=10, stop=12))
    assert (before.batch.num_rows, before.next_offset, dict(before.gaps)) == (0, 12, {"compacted": 2})
    (between,) = read(data, RequestedOffsets(start=14, stop=15))
    assert (between.batch.num_rows, between.next_offset, dict(between.gaps)) == (0, 15, {"compacted": 1})


# faults R20, R22: compaction keeps the head of a producer's last batch, and drops what was aborted.
def test_an_empty_aborted_batch_and_an_empty_marker_are_gaps() -> None:
    empty = record_batch([], span=(0, 4), attributes=TRANSACTIONAL, producer=(1, 0, 0))
    ended = record_batch([], span=(5, 5), attributes=CONTROL | TRANSACTIONAL, producer=(1, 0, -1))
    data = empty + ended + batch(6)
    assert gaps(data, aborted=((1, 0),)) == {"aborted": 5, "control": 1}
    assert gaps(data) == {"compacted": 5, "control": 1}
    assert offsets(data, aborted=((1, 0),)) == [6]


# fault R21: KRaft's own markers are of no transaction.
def test_a_marker_without_a_transaction_is_skipped() -> None:
    change = record_batch([Record(offset=1, key=struct.pack(">hh", 0, 2), value=b"leader")], attributes=CONTROL)
    assert gaps(batch(0) + change + batch(2), aborted=((7, 0),)) == {"control": 1}


# fault R22: the marker is read from a batch of any codec; what is wrong with it has its offset.
@pytest.mark.parametrize("codec", range(5))
def test_a_marker_may_be_compressed(codec: int) -> None:
    record = Record(offset=1, key=struct.pack(">hh", 0, 0), value=bytes(6))
    ended = record_batch([record], codec=codec, attributes=CONTROL | TRANSACTIONAL, producer=(1, 0, -1))
    data = batch(0, attributes=TRANSACTIONAL, producer=1) + ended + batch(2, attributes=TRANSACTIONAL, producer=1)
    assert offsets(data, aborted=((1, 0),)) == [2]


def test_a_marker_without_a_valid_record_is_corrupt() -> None:
    marked = CONTROL | TRANSACTIONAL
    for record in (Record(offset=1), Record(offset=1, key=b"\0\0\0")):
        data = batch(0) + record_batch([record], attributes=marked, producer=(1, 0, -1))
        with pytest.raises(Corrupt, match="marker") as raised:
            read(data, aborted=((1, 0),), where=WHERE)
        assert raised.value.where == WHERE.at_offset(1)
    broken = bytearray(record_batch([Record(offset=1, key=bytes(4))], attributes=marked, producer=(1, 0, -1)))
    broken[61] = 1
    with pytest.raises(Corrupt, match="record 0 of 1: an invalid length") as raised:
        read(batch(0) + repaired(broken), aborted=((1, 0),), where=WHERE)
    assert raised.value.where == WHERE.at_offset(1)


# fault R20: a transaction can begin before the fetch and end after it.
def test_an_aborted_transaction_is_left_out_of_every_slice_that_it_overlaps() -> None:
    parts = [
        batch(0, 1, attributes=TRANSACTIONAL, producer=1),
        batch(2),
        batch(3, attributes=TRANSACTIONAL, producer=1),
    ]
    aborted = ((1, 0),)
    whole = b"".join(parts)
    assert offsets(whole, aborted=aborted) == [2]
    assert gaps(whole, RequestedOffsets(start=1, stop=2), aborted=aborted) == {"aborted": 1}
    assert gaps(b"".join(parts[1:]), RequestedOffsets(start=2), aborted=aborted) == {"aborted": 1}
    assert gaps(whole, RequestedOffsets(start=0, stop=1), aborted=aborted) == {"aborted": 1}


# fault R25: compacted batches keep the time of the append for those that are left.
def test_a_compacted_batch_keeps_its_append_time() -> None:
    data = record_batch([Record(offset=4, timestamp=3)], span=(2, 8), append_time=99)
    assert [row[:3] for row in read_rows(data, RequestedOffsets(start=2))] == [(4, 99, 1)]
