"""The partitions of a consumer: where each is read next, what was fetched of it and not yet handed out.

A partition is fetched again once all that was fetched is handed out, so that memory holds one answer at most.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from kafka_io.client.fetched import Consumed, FetchAt, Fetched
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.leading import Place
from kafka_io.client.modern.simple import ModernFetching
from kafka_io.client.reading import Reading
from kafka_io.errors import KafkaIOError, TooLarge, Where
from kafka_io.model import BrokerPartition
from kafka_io.records.columns import Decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Records of one partition in Arrow's columns, in the order of their offsets.

    Args:
        records: offset, timestamp (ms), timestampType, key, value, headers.
        next_offset: where to go on behind them; offsets without a record lie between.

    >>> import pyarrow as pa
    >>> from kafka_io.client.group.intake import Batch
    >>> batch = Batch(topic="clicks", partition=0, records=pa.record_batch({"offset": [7, 8]}), next_offset=9)
    >>> batch.place, batch.records.num_rows
    (('clicks', 0), 2)
    """

    topic: str
    partition: int
    records: pa.RecordBatch
    next_offset: int

    @property
    def place(self) -> Place:
        """Topic and number of the partition."""
        return self.topic, self.partition

    def __iter__(self) -> Iterator[Consumed]:
        asked = FetchAt(topic=self.topic, partition=BrokerPartition(None, self.partition), offset=0)
        decoded = Decoded(self.records, self.next_offset, {})
        return iter(Fetched(asked=asked, next_offset=self.next_offset, needed_bytes=0, decode=lambda: iter([decoded])))


class Intake:
    """What is read of the partitions that `brokers` lead to. One thread uses it."""

    def __init__(self, brokers: Brokers, reading: Reading) -> None:
        self._brokers = brokers
        self._reading = reading
        self._handed: dict[Place, int] = {}  # up to where records were handed out
        self._sizes: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._fetched: deque[Batch] = deque()

    @property
    def positions(self) -> Mapping[Place, int]:
        """The offset behind what was handed out, of each partition that has one."""
        return dict(self._handed)

    @property
    def paused(self) -> frozenset[Place]:
        """Partitions of which nothing is handed out for now."""
        return frozenset(self._paused)

    def seek(self, place: Place, offset: int) -> None:
        """Go on from `offset`; what was fetched of the partition is forgotten."""
        self._forget([place])
        self._handed[place] = offset

    def drop(self, places: Collection[Place]) -> None:
        """Read these partitions no more."""
        self._forget(places)
        self._paused.difference_update(places)
        for place in places:
            self._handed.pop(place, None)
            self._sizes.pop(place, None)

    def pause(self, places: Iterable[Place]) -> None:
        """Hand out nothing of them until they are resumed."""
        self._paused.update(places)

    def resume(self, places: Iterable[Place]) -> None:
        """Go on where they were paused."""
        self._paused.difference_update(places)

    def take(self, *, besides: Collection[Place] = ()) -> Batch | None:
        """The next batch that is there, of other partitions than these; thereby it is handed out."""
        for index, batch in enumerate(self._fetched):
            if batch.place not in self._paused and batch.place not in besides:
                del self._fetched[index]
                self._handed[batch.place] = batch.next_offset
                return batch
        return None

    def fetch(self, max_wait_s: float) -> dict[Place, KafkaIOError] | None:
        """Ask for more of the partitions with nothing left; what failed of them. None if there is nobody to ask.

        Raises:
            WireError: what came are no records, or they are too large; `seek` goes past them.
        """
        waiting = {batch.place for batch in self._fetched}
        places = [place for place in self._handed if place not in waiting and place not in self._paused]
        if not places:
            return None
        # Those that are asked come last the next time: one request may not have room for all.
        for place in places:
            self._handed[place] = self._handed.pop(place)
        fetching = ModernFetching(lambda: self._brokers, self._reading, max_wait_ms=round(max_wait_s * 1000))
        asked = [self._asked(place) for place in places[: self._most]]
        failed = {}
        for place, answer in zip(places, fetching.multifetch(asked), strict=False):
            if isinstance(answer, KafkaIOError):
                failed[place] = answer
            else:
                self._keep(place, answer)
        return failed

    @property
    def _most(self) -> int:
        """How many partitions one answer has room for; brokers before 0.10.1 go by each partition's size alone."""
        sizes = self._reading.sizes
        return max(1, sizes.max_fetch_bytes // max(self._sizes.values(), default=sizes.fetch_bytes))

    def _asked(self, place: Place) -> FetchAt:
        topic, number = place
        size = self._sizes.get(place, self._reading.sizes.fetch_bytes)
        offset = self._handed[place]
        return FetchAt(topic=topic, partition=BrokerPartition(None, number), offset=offset, max_bytes=size)

    def _keep(self, place: Place, answer: Fetched) -> None:
        if answer.needed_bytes:
            self._sizes[place] = self._larger(place, answer.needed_bytes)
            return
        self._sizes.pop(place, None)
        for decoded in answer.batches():
            if decoded.batch.num_rows:
                topic, number = place
                found = Batch(topic=topic, partition=number, records=decoded.batch, next_offset=decoded.next_offset)
                self._fetched.append(found)
            elif self._fetched and self._fetched[-1].place == place:
                self._fetched[-1] = replace(self._fetched[-1], next_offset=decoded.next_offset)
            else:
                self._handed[place] = decoded.next_offset

    def _larger(self, place: Place, needed_bytes: int) -> int:
        sizes = self._reading.sizes
        if needed_bytes > sizes.max_fetch_bytes:
            sentence = f"a batch of {needed_bytes} bytes is above max_fetch_bytes = {sizes.max_fetch_bytes}"
            raise TooLarge(sentence, Where(topic=place[0], partition=place[1], offset=self._handed[place]))
        return min(sizes.max_fetch_bytes, max(needed_bytes, 2 * self._sizes.get(place, sizes.fetch_bytes)))

    def _forget(self, places: Collection[Place]) -> None:
        self._fetched = deque(batch for batch in self._fetched if batch.place not in places)
