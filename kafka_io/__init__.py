"""Kafka as a library: wire protocol, records as Arrow columns, clients and an embedded broker.

The names below are its door. Each is imported when it is first asked for, so that looking at bytes needs no ZooKeeper
client, and asking for help no compiler.

    >>> from kafka_io import decode_v07, message_set
    >>> data = message_set([b"one", b"two"])
    >>> [decoded] = decode_v07(data, base=0)
    >>> decoded.batch.column("value").to_pylist()
    [b'one', b'two']

    >>> from kafka_io import Asked, Record, decode, record_batch
    >>> data = record_batch([Record(offset=7, value=b"seven")], codec=4)
    >>> [decoded] = decode(data, Asked(at=5), columns=["offset", "value"])
    >>> decoded.batch.to_pylist(), decoded.next_offset, dict(decoded.gaps)
    ([{'offset': 7, 'value': b'seven'}], 8, {'compacted': 2})
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_io.client.cluster import Cluster
    from kafka_io.client.opening import open_cluster
    from kafka_io.client.reading import Reading, Span
    from kafka_io.client.source import Source
    from kafka_io.client.v07.producer import Producer, publish
    from kafka_io.errors import (
        BrokerError,
        Corrupt,
        KafkaIOError,
        NetworkError,
        OffsetOutOfRange,
        RegistryError,
        TooLarge,
        Unsupported,
        Where,
        WireError,
    )
    from kafka_io.model import Bounds, Broker, BrokerPartition, TopicEntry
    from kafka_io.records.build import Record, log_messages, message_set, record_batch
    from kafka_io.records.columns import Decoded, Limits, decode_v07
    from kafka_io.records.entries import Asked
    from kafka_io.records.logs import decode
    from kafka_io.registry.zookeeper import Registry

__all__ = [
    "Asked",
    "Bounds",
    "Broker",
    "BrokerError",
    "BrokerPartition",
    "Cluster",
    "Corrupt",
    "Decoded",
    "KafkaIOError",
    "Limits",
    "NetworkError",
    "OffsetOutOfRange",
    "Producer",
    "Reading",
    "Record",
    "Registry",
    "RegistryError",
    "Source",
    "Span",
    "TooLarge",
    "TopicEntry",
    "Unsupported",
    "Where",
    "WireError",
    "decode",
    "decode_v07",
    "log_messages",
    "message_set",
    "open_cluster",
    "publish",
    "record_batch",
]

_ROOMS = (
    "errors",
    "model",
    "records.columns",
    "records.build",
    "records.entries",
    "records.logs",
    "registry.zookeeper",
    "client.cluster",
    "client.opening",
    "client.reading",
    "client.source",
    "client.v07.producer",
)


def __getattr__(name: str) -> Any:
    """The name from the room it lives in (PEP 562)."""
    if name in __all__:
        for room in _ROOMS:
            found = vars(import_module(f"kafka_io.{room}")).get(name)
            if found is not None:
                return found
    raise AttributeError(f"module 'kafka_io' has no attribute {name!r}")
