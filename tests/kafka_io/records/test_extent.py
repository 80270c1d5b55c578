"""What to ask for next is known before anything is decoded."""

import pytest

from kafka_io.errors import Corrupt, Unsupported, Where
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.entries import Asked
from kafka_io.records.extent import Extent, extent_of, first_entry_bytes
from tests.kafka_io.records.log_talk import NAMES, golden, read

EVERYTHING = Asked(at=0)
MIXED = (
    log_messages([Record(offset=0), Record(offset=1)], magic=0, codec=1),
    log_messages([Record(offset=3)], magic=1),
    record_batch([], span=(4, 9)),
    record_batch([Record(offset=12)], codec=4),
    log_messages([Record(offset=13)], magic=1),
)


# R02
@pytest.mark.parametrize("name", NAMES)
def test_an_extent_reaches_as_far_as_what_is_decoded(name: str) -> None:
    data = golden(name)
    for size in (*range(0, len(data), 7), len(data)):
        batches = read(data[:size])
        found = extent_of(data[:size], EVERYTHING)
        assert found.next_offset == (batches[-1].next_offset if batches else 0)
        assert read(data[: found.whole_bytes]) == [] or found.whole_bytes > 0


# R20, R28
def test_an_extent_goes_through_all_formats() -> None:
    ends, offsets = 0, (2, 4, 10, 13, 14)
    for part, next_offset in zip(MIXED, offsets, strict=True):
        ends += len(part)
        found = extent_of(b"".join(MIXED)[: ends + 20], EVERYTHING)
        assert found == Extent(whole_bytes=ends, next_offset=next_offset)


def test_an_extent_ends_with_what_was_asked_for() -> None:
    assert extent_of(b"".join(MIXED), Asked(at=0, stop=7)).next_offset == 7
    assert extent_of(b"", Asked(at=7)) == Extent(whole_bytes=0, next_offset=7)


# R03
def test_an_entry_tells_its_size_in_its_first_bytes() -> None:
    for part in MIXED:
        assert first_entry_bytes(part) == first_entry_bytes(part[:12]) == len(part)
        assert first_entry_bytes(part[:11]) is None


# R04, R06, R07, R12
@pytest.mark.parametrize(
    ("data", "asked", "kind"),
    [
        (MIXED[0], Asked(at=2), Corrupt),
        (MIXED[1], Asked(at=4), Corrupt),
        (MIXED[3], Asked(at=0, end=12), Corrupt),
        (MIXED[1], Asked(at=0, end=3), Corrupt),
        (MIXED[1] + MIXED[1][:8] + bytes(4), Asked(at=0), Corrupt),
        (MIXED[3] + MIXED[3], Asked(at=0), Corrupt),
        (MIXED[3][:16] + b"\x03" + MIXED[3][17:], Asked(at=0), Unsupported),
    ],
)
def test_headers_that_cannot_be_right_are_typed(data: bytes, asked: Asked, kind: type[Corrupt]) -> None:
    where = Where(topic="clicks")
    with pytest.raises(kind) as raised:
        extent_of(data, asked, where=where)
    assert raised.value.where.topic == "clicks"
    assert raised.value.where.offset is not None
