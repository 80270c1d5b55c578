"""Bounded reads of one broker-partition of a 0.7 broker.

A slice `[start, stop)` is read to its last byte and never past it. A short answer is not the end: a fetch never crosses
the end of a segment (facts, 2). The next fetch is sent as soon as the lengths of the last answer are known, so the
broker works while its bytes are decoded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kafka_io.client.reading import FetchSizes
from kafka_io.client.v07.link import Link07
from kafka_io.error_codes import check
from kafka_io.errors import Corrupt, LogShort, TooLarge, Where, placing
from kafka_io.model import Bounds, BrokerPartition
from kafka_io.records.batches import first_length, whole_bytes
from kafka_io.records.columns import Decoded, Limits, decode_v07
from kafka_io.v07.messages import (
    LATEST_TIME,
    AnyAnswer,
    Fetch,
    FetchAnswer,
    MultiFetch,
    MultiFetchAnswer,
    Offsets,
    OffsetsAnswer,
)

MOST_OFFSETS = 1_000_000  # a genuine broker keeps the file of every segment open: it cannot have as many


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition07:
    """One partition of `topic` on the broker that `link` leads to."""

    link: Link07
    topic: str
    id: BrokerPartition
    cluster: str | None = None
    sizes: FetchSizes = field(default_factory=FetchSizes)
    limits: Limits = field(default_factory=Limits)

    @property
    def where(self) -> Where:
        """The partition's place, for errors."""
        return Where(cluster=self.cluster, topic=self.topic, partition=str(self.id)).within(self.link.where)

    def bounds(self) -> Bounds:
        """What the broker holds: earliest, latest, and the starts of its segments between them (facts, 4).

        One answer tells all, so retention cannot come between its parts.

        Raises:
            Corrupt: offsets that cannot be right.
            TooLarge: more than MOST_OFFSETS of them.
            NetworkError: no answer; a genuine broker closes the connection when it has no such partition.
        """
        with placing(self.where):
            answer = self.link.ask(Offsets(self.topic, self.id.partition, LATEST_TIME, MOST_OFFSETS))
            assert isinstance(answer, OffsetsAnswer)
            check(answer.error, self.where)
            return _bounds(answer.offsets)

    def fetch(self, offset: int, size: int) -> Fetch:
        """The request for at most `size` bytes from `offset` on."""
        return Fetch(self.topic, self.id.partition, offset, size)

    def read(self, start: int, stop: int, *, first: FetchAnswer | None = None) -> Iterator[Decoded]:
        """Everything in `[start, stop)` as Arrow batches; the last one's `next_offset` is `stop`.

        Args:
            start: where a message starts.
            stop: where a message ends.
            first: the answer to a fetch from `start` of the whole range or `fetch_bytes`, if one is at hand (see
                `fetch_firsts`).

        Raises:
            OffsetOutOfRange: the broker no longer holds it all.
            Corrupt: bytes that are no messages, or a message that crosses `stop`.
            TooLarge: a message above `max_fetch_bytes`, or one that decompresses past `max_decompressed_bytes`.
            LogShort: the log ends before `stop`.
            NetworkError: the broker could not be reached, also after all retries.
        """
        with placing(self.where):
            yield from self._read(start, stop, _useful(first))

    def _read(self, at: int, stop: int, answer: FetchAnswer | None) -> Iterator[Decoded]:
        size = self.sizes.fetch_bytes
        while at < stop:
            asked = min(size, stop - at)
            answer = answer or self._ask(at, asked)
            check(answer.error, self.where.at(at))
            data = memoryview(answer.message_set)[: stop - at]
            whole = whole_bytes(data, base=at, where=self.where)
            after = at + whole
            if not whole:
                size = self._larger_size(data, asked=asked, at=at, stop=stop)
                answer = None
                continue
            ahead = self.link.ask_ahead(self.fetch(after, min(size, stop - after))) if after < stop else None
            yield from decode_v07(data[:whole], base=at, limits=self.limits, where=self.where)
            at = after
            answer = _useful(ahead.answer()) if ahead else None

    def _ask(self, at: int, size: int) -> FetchAnswer:
        with placing(self.where.at(at)):
            answer = self.link.ask(self.fetch(at, size), accepted=_not_short)
        assert isinstance(answer, FetchAnswer)
        return answer

    def _larger_size(self, data: memoryview, *, asked: int, at: int, stop: int) -> int:
        """The size to ask for next when `data`, the answer for `asked` bytes, holds not one whole message."""
        needed = first_length(data) or len(data) + 1
        if len(data) < asked or at + needed > stop:
            raise Corrupt(f"a message of {needed} bytes runs past the end of the log or slice", self.where.at(at))
        if needed > self.sizes.max_fetch_bytes:
            raise TooLarge(
                f"a message of {needed} bytes is above max_fetch_bytes = {self.sizes.max_fetch_bytes}",
                self.where.at(at),
            )
        return min(self.sizes.max_fetch_bytes, 2 * asked)


def fetch_firsts(link: Link07, starts: Sequence[tuple[Partition07, int, int]]) -> list[FetchAnswer]:
    """The first bytes of many small ranges of one broker in one MULTIFETCH: (partition, offset, size) each.

    The answers go to `Partition07.read(first=...)`, which also raises the errors they hold.

    Raises:
        NetworkError: the broker could not be reached, also after all retries.
        WireError: an answer that does not fit the request (W11).
    """
    answer = link.ask(MultiFetch(tuple(partition.fetch(at, size) for partition, at, size in starts)))
    assert isinstance(answer, MultiFetchAnswer)
    return list(answer.answers)


def _bounds(offsets: tuple[int, ...]) -> Bounds:
    """`offsets` are the end and the starts of all segments, descending."""
    if not offsets or offsets[-1] < 0 or list(offsets) != sorted(offsets, reverse=True):
        raise Corrupt(f"offsets that cannot be right: {list(offsets[:5])}")
    if len(offsets) == MOST_OFFSETS:
        raise TooLarge(f"a log of {MOST_OFFSETS} segments or more")
    latest, earliest = offsets[0], offsets[-1]
    cuts = sorted(set(offsets) - {latest, earliest})
    return Bounds(earliest=earliest, latest=latest, cuts=tuple(cuts))


def _useful(answer: AnyAnswer | None) -> FetchAnswer | None:
    """A fetch answer that holds bytes or an error; an empty one tells nothing that is worth keeping."""
    assert answer is None or isinstance(answer, FetchAnswer)
    return answer if answer and (answer.error or len(answer.message_set)) else None


def _not_short(answer: AnyAnswer) -> None:
    """Bytes were there when the slice was planned; none now may pass (a flush to come), or the log was cut."""
    if _useful(answer) is None:
        raise LogShort("the broker's log ends before the planned range does: it was truncated")
