"""Publishes values with our producers: to an address, or to a cluster of the settings."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from kafka_io.model import Generation
from kafka_io.producer.message import Delivered
from kafka_io.producer.opening import open_producer
from kafka_io.producer.producer import Producer
from kafka_io.producer.publishing import publish_values
from kafka_io.producer.settings import ProducerSettings
from resources import kafka
from resources.settings.settings import Settings


def publish(
    topic: str,
    values: Iterable[bytes],
    *,
    zookeeper: str | None = None,
    bootstrap: str | None = None,
    generation: Generation | None = None,
    codecs: Sequence[str] = ("none",),
    batch_size: int = 500,
) -> int:
    """Publish to the cluster at an address; return the number of values. Codecs and partitions take turns by batch."""

    def open_(codec: str) -> Producer[Delivered]:
        settings = ProducerSettings(compression=codec, idempotent=False)
        return open_producer(zookeeper=zookeeper, bootstrap=bootstrap, generation=generation, settings=settings)

    with ExitStack() as closing:
        producers = [closing.enter_context(open_(codec)) for codec in codecs]
        return publish_values(producers, topic, values, batch_size=batch_size)


def publish_by_settings(
    settings: Settings, topic: str, values: Iterable[bytes], *, cluster: str = "main", batch_size: int = 500
) -> int:
    """Publish to a cluster of the settings, without compression; return the number of values."""
    with kafka.open_producer(settings, cluster) as producer:
        return publish_values((producer,), topic, values, batch_size=batch_size)
