"""Where partitions are begun: at what the group committed, else where the choice of the user says."""

from collections.abc import Iterable
from enum import StrEnum

from kafka_io.client.modern.bounds import bounds_of, offsets_at
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.leading import Answers, Place
from kafka_io.errors import OffsetOutOfRange, Where
from kafka_io.model import Bounds

_OUT_OF_RANGE = 1


class Reset(StrEnum):
    """Where to begin a partition without an offset, or whose offset is gone; Kafka's `auto.offset.reset`.

    >>> from kafka_io import Reset
    >>> Reset("latest") is Reset.LATEST
    True
    """

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class Bearings:
    """Offsets that the brokers know: the ends of partitions, and times in them.

    Args:
        committed: records of open transactions lie behind the end.
    """

    def __init__(self, brokers: Brokers, *, committed: bool) -> None:
        self._brokers = brokers
        self._committed = committed

    def reset(self, places: Iterable[Place], reset: Reset) -> Answers[int]:
        """Where to begin; an error hides only what it concerns.

        Raises:
            OffsetOutOfRange: nowhere, as the user chose.
        """
        places = sorted(places)
        if reset is Reset.NONE and places:
            (topic, number), *_ = places
            sentence = "the group has no offset to begin with that the log holds, and the reset is `none`"
            raise OffsetOutOfRange(sentence, Where(topic=topic, partition=number), _OUT_OF_RANGE)
        ends = bounds_of(self._brokers, places, committed=self._committed) if places else {}
        return {
            place: getattr(end, reset) if isinstance(end, Bounds) else end  # fields of Bounds have these names
            for place, end in ends.items()
        }

    def at(self, places: Iterable[Place], timestamp_ms: int) -> Answers[int]:
        """The first offset of each whose record is not older; see `Cluster.offsets_at`."""
        return offsets_at(self._brokers, places, timestamp_ms, committed=self._committed)
