"""Ranges of a cluster's partitions, from whichever brokers lead them."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.dial import Dialling
from kafka_io.client.modern.partition import ModernPartition
from kafka_io.client.reading import Reading, Span
from kafka_io.closing import Closing
from kafka_io.errors import Where
from kafka_io.model import Broker, Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.records.columns import Decoded

_BESIDE_RECORDS = 1024 * 1024  # what an answer may hold beside records


def open_brokers(
    bootstrap: Sequence[Broker],
    reading: Reading,
    *,
    cluster: str | None,
    generation: Generation | None = None,
    security: Security,
    sleep: Callable[[float], None] = time.sleep,
) -> Brokers:
    """The brokers that `bootstrap` leads to; nothing is connected yet.

    Raises:
        TlsFailed: the files of `security` cannot be used.
    """
    dialling = Dialling.of(
        security,
        timeout_s=reading.patience.timeout_s,
        max_answer_bytes=reading.sizes.max_fetch_bytes + _BESIDE_RECORDS,
        generation=generation,
    )
    return Brokers(bootstrap, dialling, reading.patience, where=Where(cluster=cluster), sleep=sleep)


class ModernReader(Closing):
    """Reads from the leaders that the brokers of `bootstrap` know."""

    def __init__(
        self,
        bootstrap: Sequence[Broker],
        reading: Reading,
        *,
        cluster: str | None = None,
        generation: Generation | None = None,
        security: Security = PLAINTEXT,
    ) -> None:
        self._brokers = open_brokers(bootstrap, reading, cluster=cluster, generation=generation, security=security)
        self._reading = reading

    def read(self, spans: Iterable[Span]) -> Iterator[Iterator[Decoded]]:
        """The batches of each span, in order."""
        for span in spans:
            yield ModernPartition(brokers=self._brokers, span=span, reading=self._reading).read()

    def serving(self, span: Span) -> Broker | None:
        """Whom the span is read from, once it is read."""
        return self._brokers.serving(span.topic, span.id.partition)

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._brokers.close()
