"""The end of an unreadable range is the first offset that the broker can give again, found with few questions."""

import pytest

from kafka_io.errors import BrokerBusy, BrokerError, Corrupt, NetworkError, TooLarge, Unsupported, Where
from kafka_io.reader.unreadable import FirstEntry, is_unreadable, unreadable_range

Span = tuple[int, int]


class DamagedLog:
    """A log of batches `[base, next)`, some of them damaged. It counts the questions."""

    def __init__(self, batches: list[Span], damaged: set[int], claims: dict[int, Span] | None = None) -> None:
        self._batches, self._damaged, self._claims = batches, damaged, claims or {}
        self.looks = 0

    def look(self, offset: int) -> FirstEntry:
        """See Look."""
        self.looks += 1
        base, end = next(batch for batch in self._batches if batch[1] > offset)
        is_damaged = base in self._damaged
        claimed = self._claims.get(base, (base, end))
        return FirstEntry(readable=not is_damaged, base=claimed[0], next_offset=claimed[1], data=b"%d" % base)


BATCHES = [(0, 5), (5, 10), (10, 200), (200, 205), (205, 1000)]


@pytest.mark.parametrize(
    ("start", "stop", "damaged", "claims", "end"),
    [
        (0, 1000, set(), {}, 0),
        (5, 1000, {5}, {}, 10),
        (7, 1000, {5}, {}, 10),
        (10, 150, {10}, {}, 150),
        (5, 1000, {5, 10}, {}, 10),  # each damaged batch is a range of its own
        (5, 1000, {5}, {5: (5, 8)}, 10),
        (5, 1000, {5}, {5: (5, 150)}, 10),
        (5, 1000, {5}, {5: (5, 2**40)}, 10),
        (5, 1000, {5}, {5: (-1, -1)}, 10),
        (10, 1000, {10}, {10: (10, 11)}, 200),
        (10, 1000, {10, 200}, {10: (-1, -1), 200: (-1, -1)}, 205),
        (205, 1000, {205}, {205: (-1, -1)}, 1000),
    ],
)
def test_the_range_ends_at_the_next_batch_that_can_be_read(
    start: int, stop: int, damaged: set[int], claims: dict[int, Span], end: int
) -> None:
    log = DamagedLog(BATCHES, damaged, claims)
    unreadable = unreadable_range(start, stop, log.look)
    assert (unreadable.start, unreadable.stop) == (start, end or start)
    assert bool(unreadable.data) == (unreadable.start < unreadable.stop)
    assert log.looks <= 25


def test_offsets_that_compaction_removed_after_the_batch_count_as_unreadable() -> None:
    log = DamagedLog([(0, 5), (9, 20)], {0})
    assert unreadable_range(0, 20, log.look).stop == 9


def test_a_range_without_an_end_is_searched_with_few_questions() -> None:
    log = DamagedLog([(0, 2**40)], {0}, {0: (-1, -1)})
    assert unreadable_range(0, 2**40, log.look).stop == 2**40
    assert log.looks < 100


def test_only_errors_about_records_at_an_offset_are_unreadable() -> None:
    where = Where(offset=3)
    about_records = Corrupt("", where), TooLarge("", where), Unsupported("", where), BrokerBusy("", where, 2)
    assert all(map(is_unreadable, about_records))
    # The count of a whole range that does not agree with its headers, for example, belongs to no offset.
    assert not any(map(is_unreadable, (NetworkError("", where), BrokerError("", where, 6), Corrupt(""))))
