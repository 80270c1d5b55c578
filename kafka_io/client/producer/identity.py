"""Who an idempotent producer is to the brokers, and which numbers its batches have (KIP-98).

A batch keeps its numbers however often it is sent, so that brokers store it once. When one is given up, nobody knows
whether it is there, and the numbers behind it cannot be right: the producer goes on with a new id or epoch, from 0.
"""

from collections.abc import Callable, Iterable, Mapping

from kafka_io.client.modern.leading import Place
from kafka_io.records.build import NO_PRODUCER

Begin = Callable[[], tuple[int, int] | None]
_SEQUENCES = 2**31


class Identity:
    """Numbers batches with the id and epoch that `begin` asks for; not at all while it gives None."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._begun: tuple[int, int] | None = None
        self._next: dict[Place, int] = {}
        self._known = False

    def begin(self) -> tuple[int, int] | None:
        """Id and epoch; asked for if they are not known.

        Raises:
            KafkaIOError: they are not given.
        """
        if not self._known:
            self._begun, self._known = self._begin(), True
        return self._begun

    def numbers(self, places: Iterable[Place]) -> dict[Place, tuple[int, int, int]]:
        """Id, epoch and first sequence number of the next batch for each partition. Raises what `begin` does."""
        begun = self.begin()
        if begun is None:
            return dict.fromkeys(places, NO_PRODUCER)
        return {place: (*begun, self._next.get(place, 0)) for place in places}

    def count(self, places: Mapping[Place, int]) -> None:
        """Batches of so many records are stored."""
        for place, count in places.items():
            self._next[place] = (self._next.get(place, 0) + count) % _SEQUENCES

    def forget(self) -> None:
        """Begin anew before the next batch."""
        self._known = False
        self._next.clear()
