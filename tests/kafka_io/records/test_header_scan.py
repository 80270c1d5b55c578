"""A header scan gives the next offset to fetch before anything is decoded."""

import pytest

from kafka_io.errors import Corrupt, Unsupported, Where
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.header_scan import HeaderScan, first_entry_bytes, scan_headers
from kafka_io.records.layout import CONTROL
from kafka_io.records.record_set import RequestedOffsets
from tests.kafka_io.records.decoding import NAMES, golden, read

EVERYTHING = RequestedOffsets(start=0)
MIXED = (
    log_messages([Record(offset=0), Record(offset=1)], magic=0, codec=1),
    log_messages([Record(offset=3)], magic=1),
    record_batch([], span=(4, 9)),
    record_batch([Record(offset=12)], codec=4),
    log_messages([Record(offset=13)], magic=1),
)


# fault R02
@pytest.mark.parametrize("name", NAMES)
def test_a_header_scan_reaches_the_offset_that_decoding_reaches(name: str) -> None:
    data = golden(name)
    for size in (*range(0, len(data), 7), len(data)):
        batches = read(data[:size])
        scan = scan_headers(data[:size], EVERYTHING)
        assert scan.next_offset == (batches[-1].next_offset if batches else 0)
        assert read(data[: scan.whole_bytes]) == [] or scan.whole_bytes > 0


# faults R20, R28
def test_a_header_scan_covers_all_formats() -> None:
    ends, offsets, records = 0, (2, 4, 10, 13, 14), ((0, 2), (0, 4), (0, 4), (1, 5), (1, 6))
    for part, next_offset, (least, most) in zip(MIXED, offsets, records, strict=True):
        ends += len(part)
        scan = scan_headers(b"".join(MIXED)[: ends + 20], EVERYTHING)
        assert scan == HeaderScan(whole_bytes=ends, next_offset=next_offset, min_records=least, max_records=most)


# fault P03
@pytest.mark.parametrize(
    ("start", "stop", "least", "most"),
    [(0, 20, 4, 4), (10, 13, 3, 3), (11, 13, 2, 2), (0, 12, 2, 2), (12, 15, 1, 2), (14, 20, 0, 1), (13, 17, 0, 1)],
)
def test_a_header_scan_counts_the_requested_records(start: int, stop: int, least: int, most: int) -> None:
    """Compaction has left one record of the batch [13, 18], and a transaction marker is no record."""
    dense = record_batch([Record(offset=offset) for offset in (10, 11, 12)])
    sparse = record_batch([Record(offset=14)], span=(13, 18))
    marker = record_batch([Record(offset=19, key=bytes(4))], attributes=CONTROL)
    parts = [data for data, last in ((dense, 12), (sparse, 18), (marker, 19)) if last >= start]
    scan = scan_headers(b"".join(parts), RequestedOffsets(start=start, stop=stop))
    assert (scan.min_records, scan.max_records) == (least, most)


def test_a_header_scan_ends_at_the_requested_stop() -> None:
    assert scan_headers(b"".join(MIXED), RequestedOffsets(start=0, stop=7)).next_offset == 7
    assert scan_headers(b"", RequestedOffsets(start=7)) == HeaderScan(
        whole_bytes=0, next_offset=7, min_records=0, max_records=0
    )


# fault R03
def test_the_header_of_an_entry_gives_its_size() -> None:
    for part in MIXED:
        assert first_entry_bytes(part) == first_entry_bytes(part[:12]) == len(part)
        assert first_entry_bytes(part[:11]) is None


# faults R04, R06, R07, R12
@pytest.mark.parametrize(
    ("data", "requested", "kind"),
    [
        (MIXED[0], RequestedOffsets(start=2), Corrupt),
        (MIXED[1], RequestedOffsets(start=4), Corrupt),
        (MIXED[3], RequestedOffsets(start=0, high_watermark=12), Corrupt),
        (MIXED[1], RequestedOffsets(start=0, high_watermark=3), Corrupt),
        (MIXED[1] + MIXED[1][:8] + bytes(4), RequestedOffsets(start=0), Corrupt),
        (MIXED[3] + MIXED[3], RequestedOffsets(start=0), Corrupt),
        (MIXED[3][:16] + b"\x03" + MIXED[3][17:], RequestedOffsets(start=0), Unsupported),
    ],
)
def test_invalid_entry_headers_raise_typed_errors(
    data: bytes, requested: RequestedOffsets, kind: type[Corrupt]
) -> None:
    where = Where(topic="clicks")
    with pytest.raises(kind) as raised:
        scan_headers(data, requested, where=where)
    assert raised.value.where.topic == "clicks"
    assert raised.value.where.offset is not None
