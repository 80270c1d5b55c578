"""Records written by a stock producer, librdkafka's, which still speaks to every broker from 0.8 on."""

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
    """Write `records`, key and value each, in order; returns when the broker has all of them.

    `client` has the settings of the producer: the address of the broker, and the codec. `details` has more fields of
    each record: `timestamp`, `headers`.

    Raises:
        KafkaException: the broker refused one, or did not answer in time.
    """
    producer = Producer(
        {
            "linger.ms": 50,  # large batches, so that codecs have something to compress
            "message.timeout.ms": _DELIVERY_MS,
            "queue.buffering.max.messages": 0,
            **client,
        }
    )
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error:
            failures.append(error)

    for (key, value), detail in zip(records, details, strict=True):
        producer.produce(topic, key=key, value=value, partition=partition, on_delivery=delivered, **detail)
    producer.flush()  # ends at the latest after message.timeout.ms
    if failures:
        raise KafkaException(failures[0])
