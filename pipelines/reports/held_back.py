"""Records that an open transaction holds back: when that is worth a warning, and the sentence about it (fault N06)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kafka_io.errors import KafkaIOError
from kafka_io.model import Bounds, BrokerPartition
from resources.quantities import count, duration

if TYPE_CHECKING:  # the command line imports this module at each start, and readers are slow to import
    from kafka_io.cluster.cluster import Cluster
    from kafka_io.cluster.open_transactions import OpenTransaction

HANGING_AFTER_MS = 15 * 60_000
"""A transaction that is open for longer hangs: brokers abort a transaction after its timeout, and by default they
accept no timeout above this (transaction.max.timeout.ms)."""


def hangs(transaction: "OpenTransaction", now_ms: int) -> bool:
    """Whether the transaction has been open for too long, or since an unknown time."""
    return transaction.began_ms is None or now_ms - transaction.began_ms > HANGING_AFTER_MS


def hanging_sentence(
    topic: str, partition: BrokerPartition, transaction: "OpenTransaction", *, held_back: int, now_ms: int
) -> str:
    """The sentence about a transaction that is open for too long, with the command that ends it."""
    age = "an unknown time" if transaction.began_ms is None else duration((now_ms - transaction.began_ms) / 1000)
    producer = "an unknown producer" if transaction.producer_id is None else f"producer {transaction.producer_id}"
    return (
        f"partition {partition}: a transaction of {producer} is open since offset {transaction.first_offset}, for "
        f"{age}, and holds back {count(held_back)} offsets; kafka-transactions.sh --bootstrap-server ADDRESS abort "
        f"--topic {topic} --partition {partition} --start-offset {transaction.first_offset} ends it"
    )


def held_back_warnings(
    cluster: "Cluster", topic: str, bounds: Mapping[BrokerPartition, Bounds], *, now_ms: int
) -> Iterator[str]:
    """A sentence about each transaction that hangs. Brokers are asked only where records are held back."""
    offsets = {partition: bound.latest for partition, bound in bounds.items() if bound.held_back}
    if not offsets:
        return
    try:
        transactions = cluster.open_transactions({topic: offsets}).get(topic, {})
    except KafkaIOError:  # the load has reported the error already, or it is temporary
        return
    for partition, transaction in sorted(transactions.items()):
        if hangs(transaction, now_ms):
            held_back = bounds[partition].held_back
            yield hanging_sentence(topic, partition, transaction, held_back=held_back, now_ms=now_ms)
