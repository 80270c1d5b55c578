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
    from kafka_io.client.connector.connector import ConsumerConnector
    from kafka_io.client.connector.stream import MessageStream
    from kafka_io.client.fetched import Consumed, FetchAt, Fetched
    from kafka_io.client.group.admin import (
        GroupDescription,
        GroupListing,
        GroupMember,
        Lag,
        describe_group,
        list_groups,
    )
    from kafka_io.client.group.consumer import GroupConsumer, Listener
    from kafka_io.client.group.intake import Batch
    from kafka_io.client.group.positions import Reset
    from kafka_io.client.group.settings import GroupSettings
    from kafka_io.client.membership import Membership
    from kafka_io.client.offsets import GroupOffsets, Storage, group_offsets
    from kafka_io.client.opening import open_cluster
    from kafka_io.client.producer.callbacks import CallbackHandler, EventHandler
    from kafka_io.client.producer.encoder import Encoder, TextEncoder
    from kafka_io.client.producer.message import (
        Delivered,
        Failure,
        Message,
        ProducerClosed,
        QueueFull,
        Undelivered,
    )
    from kafka_io.client.producer.opening import open_producer
    from kafka_io.client.producer.partitioner import Partitioner
    from kafka_io.client.producer.producer import Producer
    from kafka_io.client.producer.settings import ProducerSettings, Queueing
    from kafka_io.client.producer.transactions import TransactionError
    from kafka_io.client.reading import Reading, Span
    from kafka_io.client.simple import SimpleConsumer
    from kafka_io.client.source import Source
    from kafka_io.client.v07.producer import publish
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
    from kafka_io.model import Bounds, Broker, BrokerPartition, Generation, TopicEntry
    from kafka_io.records.build import Record, log_messages, message_set, record_batch
    from kafka_io.records.columns import Decoded, Limits, decode_v07
    from kafka_io.records.entries import Asked
    from kafka_io.records.logs import decode
    from kafka_io.registry.zookeeper import Registry

__all__ = [
    "Asked",
    "Batch",
    "Bounds",
    "Broker",
    "BrokerError",
    "BrokerPartition",
    "CallbackHandler",
    "Cluster",
    "Consumed",
    "ConsumerConnector",
    "Corrupt",
    "Decoded",
    "Delivered",
    "Encoder",
    "EventHandler",
    "Failure",
    "FetchAt",
    "Fetched",
    "Generation",
    "GroupConsumer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupOffsets",
    "GroupSettings",
    "KafkaIOError",
    "Lag",
    "Limits",
    "Listener",
    "Membership",
    "Message",
    "MessageStream",
    "NetworkError",
    "OffsetOutOfRange",
    "Partitioner",
    "Producer",
    "ProducerClosed",
    "ProducerSettings",
    "QueueFull",
    "Queueing",
    "Reading",
    "Record",
    "Registry",
    "RegistryError",
    "Reset",
    "SimpleConsumer",
    "Source",
    "Span",
    "Storage",
    "TextEncoder",
    "TooLarge",
    "TopicEntry",
    "TransactionError",
    "Undelivered",
    "Unsupported",
    "Where",
    "WireError",
    "decode",
    "decode_v07",
    "describe_group",
    "group_offsets",
    "list_groups",
    "log_messages",
    "message_set",
    "open_cluster",
    "open_producer",
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
    "client.group.admin",
    "client.group.consumer",
    "client.group.intake",
    "client.group.positions",
    "client.group.settings",
    "client.membership",
    "client.offsets",
    "client.opening",
    "client.reading",
    "client.source",
    "client.producer.callbacks",
    "client.producer.encoder",
    "client.producer.message",
    "client.producer.opening",
    "client.producer.partitioner",
    "client.producer.producer",
    "client.producer.settings",
    "client.producer.transactions",
    "client.v07.producer",
    "client.fetched",
    "client.simple",
    "client.connector.stream",
    "client.connector.connector",
)


def __getattr__(name: str) -> Any:
    """The name from the room it lives in (PEP 562)."""
    if name in __all__:
        for room in _ROOMS:
            found = vars(import_module(f"kafka_io.{room}")).get(name)
            if found is not None:
                return found
    raise AttributeError(f"module 'kafka_io' has no attribute {name!r}")
