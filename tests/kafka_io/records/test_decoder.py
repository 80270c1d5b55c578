"""Consecutive fetch answers become batches of similar size, and every offset is a row or part of a gap."""

import pytest

from kafka_io.errors import Corrupt
from kafka_io.records.build import Record, record_batch
from kafka_io.records.decoded_batch import DecodedBatch, DecodeLimits
from kafka_io.records.decoder import Decoder, decode
from kafka_io.records.record_set import RequestedOffsets

ENTRIES = [record_batch([Record(offset=10 * number + start) for start in range(3)]) for number in range(6)]
STOP = 60


def rows(batches: list[DecodedBatch]) -> list[int]:
    return [offset for decoded in batches for offset in decoded.batch.column("offset").to_pylist()]


@pytest.mark.parametrize("batch_bytes", [1, 50, 100_000])
def test_batches_do_not_depend_on_the_edges_of_fetch_answers(batch_bytes: int) -> None:
    limits = DecodeLimits(batch_bytes=batch_bytes)
    whole = list(decode(b"".join(ENTRIES), RequestedOffsets(start=1, stop=STOP), columns=["offset"], limits=limits))
    decoder = Decoder(["offset"], limits=limits)
    batches: list[DecodedBatch] = []
    for start, data in zip((1, 3, 13, 23, 33, 43), ENTRIES, strict=True):
        batches += decoder.feed(data, RequestedOffsets(start=start, stop=STOP))
    batches += decoder.flush()
    assert rows(batches) == rows(whole)
    assert batches[-1].next_offset == whole[-1].next_offset
    assert (
        sum(decoded.batch.num_rows + sum(decoded.gaps.values()) for decoded in batches) == batches[-1].next_offset - 1
    )


def test_each_batch_has_its_own_gaps() -> None:
    limits, start = DecodeLimits(batch_bytes=1), 0
    for number, decoded in enumerate(decode(b"".join(ENTRIES), RequestedOffsets(start=0, stop=STOP), limits=limits)):
        assert (decoded.batch.num_rows, decoded.gaps) == (3, {"hole": 7} if number else {})
        start = decoded.next_offset
    assert start == 53


def test_a_batch_spans_fetch_answers_until_it_is_full() -> None:
    decoder = Decoder(["offset"], limits=DecodeLimits(batch_bytes=10_000))
    for start, data in zip((0, 3, 13), ENTRIES, strict=False):
        assert list(decoder.feed(data, RequestedOffsets(start=start))) == []
    [decoded] = decoder.flush()
    assert rows([decoded]) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert (decoded.next_offset, decoded.gaps, decoded.holes) == (23, {"hole": 14}, (3, 20))
    assert list(decoder.flush()) == []


def test_a_returned_batch_does_not_change_later() -> None:
    decoder = Decoder(["offset", "value"], limits=DecodeLimits(batch_bytes=1))
    first = list(decoder.feed(ENTRIES[0], RequestedOffsets(start=0)))
    before = [decoded.batch.to_pylist() for decoded in first]
    for start, data in zip((3, 13, 23), ENTRIES[1:], strict=False):
        list(decoder.feed(data, RequestedOffsets(start=start)))
    assert [decoded.batch.to_pylist() for decoded in first] == before


def test_a_range_that_has_only_gaps_gives_a_batch_without_rows() -> None:
    decoder = Decoder()
    assert list(decoder.feed(record_batch([], span=(4, 9)), RequestedOffsets(start=4, stop=8))) == []
    [decoded] = decoder.flush()
    assert (decoded.batch.num_rows, decoded.next_offset, decoded.gaps) == (0, 8, {"compacted": 4})


# No checksum covers the base offset of an entry, so the error does not rely on it.
def test_an_error_has_the_first_offset_that_cannot_be_decoded() -> None:
    decoder = Decoder(["offset"])
    list(decoder.feed(ENTRIES[0], RequestedOffsets(start=0)))
    broken = ENTRIES[1][:-1] + bytes((ENTRIES[1][-1] ^ 1,))
    with pytest.raises(Corrupt) as raised:
        list(decoder.feed(broken, RequestedOffsets(start=3)))
    assert raised.value.where.offset == 3
