"""Writes records with a stock producer: librdkafka's, which supports all brokers from 0.8 on."""

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

_DELIVERY_MS = 60_000
Record = tuple[bytes | None, bytes | None]


def produce(
    client: Mapping[str, str],
    topic: str,
    partition: int,
    records: Sequence[Record],
    details: Sequence[Mapping[str, Any]],
) -> None:
    """Write records, each a key and a value, in order. Return when the broker has confirmed all of them.

    `client` has producer settings: the address of the broker, and the codec. `details` has for each record further
    arguments of `Producer.produce`: `timestamp`, `headers`.

    Raises:
        KafkaException: the broker refused a record, or did not answer in time.
    """
    producer = Producer(
        {
            "linger.ms": 50,  # large batches, so that codecs have something to compress
            "message.timeout.ms": _DELIVERY_MS,
            "queue.buffering.max.messages": 0,
            # A request that is tried again would otherwise be written after later ones, for example in a new topic.
            "max.in.flight.requests.per.connection": 1,
            **client,
        }
    )
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error:
            failures.append(error)

    for (key, value), detail in zip(records, details, strict=True):
        producer.produce(topic, key=key, value=value, partition=partition, on_delivery=delivered, **detail)
    producer.flush()  # returns after message.timeout.ms at the latest
    if failures:
        raise KafkaException(failures[0])
