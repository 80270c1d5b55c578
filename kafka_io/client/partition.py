"""Bounded reads of one broker-partition of a 0.7 broker.

A slice `[start, stop)` is read to its last byte and never past it. A short answer is not the end: a fetch never crosses
the end of a segment (facts, 2). The next fetch is sent as soon as the lengths of the last answer are known, so the
broker works while its bytes are decoded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kafka_io.client.link import Link
from kafka_io.error_codes import check
from kafka_io.errors import Corrupt, LogShort, NetworkError, TooLarge, Where, placing
from kafka_io.model import Bounds, BrokerPartition
from kafka_io.records.batches import first_length, whole_bytes
from kafka_io.records.columns import Decoded, Limits, decode_v07
from kafka_io.v07.messages import (
    EARLIEST_TIME,
    LATEST_TIME,
    AnyAnswer,
    Fetch,
    FetchAnswer,
    MultiFetch,
    MultiFetchAnswer,
    Offsets,
    OffsetsAnswer,
)

MOST_CUTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSizes:
    """Bytes asked for in one fetch: at first, and at most, when a message is larger than that."""

    fetch_bytes: int = 4 * 1024 * 1024
    max_fetch_bytes: int = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of `topic` on the broker that `link` leads to."""

    link: Link
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

        Raises:
            NetworkError: no answer; a genuine broker closes the connection when it has no such partition.
        """
        with placing(self.where):
            latest, *starts = self._offsets(LATEST_TIME, MOST_CUTS)
            (earliest,) = self._offsets(EARLIEST_TIME, 1)
        # Retention may have moved the start between the two answers: cuts before it are gone.
        cuts = tuple(sorted({start for start in starts if earliest < start < latest}))
        return Bounds(earliest=earliest, latest=latest, cuts=cuts)

    def _offsets(self, time: int, most: int) -> tuple[int, ...]:
        answer = self.link.ask(Offsets(self.topic, self.id.partition, time, most))
        assert isinstance(answer, OffsetsAnswer)
        check(answer.error, self.where)
        if (
            not answer.offsets
            or min(answer.offsets) < 0
            or list(answer.offsets) != sorted(answer.offsets, reverse=True)
        ):
            raise Corrupt(f"offsets that cannot be right: {answer.offsets[:5]} for time {time}", self.where)
        return answer.offsets

    def read(self, start: int, stop: int, *, first: FetchAnswer | None = None) -> Iterator[Decoded]:
        """Everything in `[start, stop)` as Arrow batches; the last one's `next_offset` is `stop`.

        Args:
            start: where a message starts.
            stop: where a message ends.
            first: the answer to a fetch from `start`, if one is at hand (see `fetch_firsts`).

        Raises:
            OffsetOutOfRange: the broker no longer holds it all.
            Corrupt: bytes that are no messages, or a message that crosses `stop`.
            TooLarge: a message above `max_fetch_bytes`, or one that decompresses past `max_decompressed_bytes`.
            LogShort: the log ends before `stop`.
            NetworkError: the broker could not be reached, also after all retries.
        """
        with placing(self.where):
            yield from self._read(start, stop, first)

    def _read(self, at: int, stop: int, answer: FetchAnswer | None) -> Iterator[Decoded]:
        size = self.sizes.fetch_bytes
        while at < stop:
            if answer is None or _is_empty(answer):
                answer = self._fetch(at, min(size, stop - at))
            check(answer.error, self.where.at(at))
            data = memoryview(answer.message_set)[: stop - at]
            whole = whole_bytes(data, base=at, where=self.where)
            if not whole:
                size = self._larger_size(data, asked=min(size, stop - at), at=at, stop=stop)
                answer = None
                continue
            after = at + whole
            ahead = after < stop and self.link.tell_ahead(self._request(after, min(size, stop - after)))
            yield from decode_v07(data[:whole], base=at, limits=self.limits, where=self.where)
            at = after
            answer = self._collect() if ahead else None

    def _request(self, at: int, size: int) -> Fetch:
        return Fetch(self.topic, self.id.partition, at, size)

    def _fetch(self, at: int, size: int) -> FetchAnswer:
        answer = self.link.ask(self._request(at, size), accepted=self._not_short)
        assert isinstance(answer, FetchAnswer)
        return answer

    def _not_short(self, answer: AnyAnswer) -> None:
        """Bytes were there when the slice was planned; none now may pass (a flush to come), or the log was cut."""
        assert isinstance(answer, FetchAnswer)
        if _is_empty(answer):
            raise LogShort("the broker's log ends before the planned range does: it was truncated")

    def _collect(self) -> FetchAnswer | None:
        try:
            answer = self.link.collect()
        except NetworkError:
            return None
        assert isinstance(answer, FetchAnswer)
        return answer

    def _larger_size(self, data: memoryview, *, asked: int, at: int, stop: int) -> int:
        """The size to ask for next when `data` holds not one whole message."""
        needed = first_length(data) or len(data) + 1
        if len(data) < asked or at + asked == stop:
            raise Corrupt(f"a message of {needed} bytes runs past the end of the log or slice", self.where.at(at))
        if needed > self.sizes.max_fetch_bytes:
            raise TooLarge(
                f"a message of {needed} bytes is above max_fetch_bytes = {self.sizes.max_fetch_bytes}",
                self.where.at(at),
            )
        return min(self.sizes.max_fetch_bytes, 2 * asked)


def _is_empty(answer: FetchAnswer) -> bool:
    return not answer.error and not len(answer.message_set)


def fetch_firsts(link: Link, starts: Sequence[tuple[Partition, int, int]]) -> list[FetchAnswer]:
    """The first bytes of many small ranges of one broker in one MULTIFETCH: (partition, offset, size) each.

    The answers go to `Partition.read(first=...)`, which also raises the errors they hold.
    """
    fetches = tuple(partition._request(at, size) for partition, at, size in starts)  # noqa: SLF001 - same file
    answer = link.ask(MultiFetch(fetches))
    assert isinstance(answer, MultiFetchAnswer)
    return list(answer.answers)
