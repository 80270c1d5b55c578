"""Ranges of one 0.7 broker's partitions."""

from collections.abc import Iterable, Iterator, Sequence

from kafka_io.client.reading import Reading, Span
from kafka_io.client.v07.link import Link07
from kafka_io.client.v07.partition import Partition07, fetch_firsts
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError
from kafka_io.model import Broker
from kafka_io.records.columns import Decoded
from kafka_io.v07.messages import FetchAnswer

_MOST_FETCHES = 1000  # in one MULTIFETCH, which counts them in 16 bits


class Reader07(Closing):
    """Reads from `broker`, over one connection."""

    def __init__(self, broker: Broker, reading: Reading, *, cluster: str | None = None) -> None:
        self._broker = broker
        self._link = Link07(broker, reading.patience)
        self._reading = reading
        self._cluster = cluster

    def read(self, spans: Iterable[Span]) -> Iterator[Iterator[Decoded]]:
        """The batches of each span, in order. Small spans are fetched with one MULTIFETCH instead of a FETCH each."""
        asked = list(spans)
        for span, first in zip(asked, self._firsts(asked), strict=True):
            yield self._partition(span).read(span.start, span.stop, first=first)

    def serving(self, span: Span) -> Broker | None:
        """Whom the span is read from: the one broker that holds it."""
        del span
        return self._broker

    def _firsts(self, spans: Sequence[Span]) -> Iterable[FetchAnswer | None]:
        total = sum(span.stop - span.start for span in spans)
        if not 1 < len(spans) <= _MOST_FETCHES or total > self._reading.sizes.fetch_bytes:
            return [None] * len(spans)
        try:
            return fetch_firsts(
                self._link, [(self._partition(span), span.start, span.stop - span.start) for span in spans]
            )
        except KafkaIOError:
            return [None] * len(spans)  # each span asks for itself and raises its own error

    def _partition(self, span: Span) -> Partition07:
        return Partition07(
            link=self._link,
            topic=span.topic,
            id=span.id,
            cluster=self._cluster,
            sizes=self._reading.sizes,
            limits=self._reading.limits,
        )

    def close(self) -> None:
        """End the connection; safe to call again."""
        self._link.close()
