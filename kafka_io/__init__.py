"""Kafka as a library: wire protocol, records as Arrow columns, and clients for every version since 0.7.

The public names below are described in docs/library.md. The module of a name is imported when the name is first used:
whoever decodes bytes needs no ZooKeeper client, and whoever reads a class's help needs no compiler.

    >>> from kafka_io import decode_v07, message_set
    >>> data = message_set([b"one", b"two"])
    >>> [decoded] = decode_v07(data, base=0)
    >>> decoded.batch.column("value").to_pylist()
    [b'one', b'two']

    >>> from kafka_io import RequestedOffsets, Record, decode, record_batch
    >>> data = record_batch([Record(offset=7, value=b"seven")], codec=4)
    >>> [decoded] = decode(data, RequestedOffsets(start=5), columns=["offset", "value"])
    >>> decoded.batch.to_pylist(), decoded.next_offset, dict(decoded.gaps)
    ([{'offset': 7, 'value': b'seven'}], 8, {'hole': 2})
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "cluster.cluster": "Cluster",
    "cluster.opening": "open_cluster",
    "consumer.connector.connector": "ConsumerConnector",
    "consumer.connector.stream": "MessageStream",
    "consumer.fetched": "ConsumedMessage FetchPosition FetchResult",
    "consumer.group.admin": "GroupDescription GroupListing GroupMember Lag describe_group list_groups",
    "consumer.group.consumer": "GroupConsumer RebalanceListener",
    "consumer.group.fetcher": "ConsumedBatch",
    "consumer.group.offset_reset": "OffsetReset",
    "consumer.group.settings": "GroupSettings",
    "consumer.group_offsets": "GroupOffsets OffsetStorage group_offsets",
    "consumer.membership": "GroupMembership",
    "consumer.simple": "SimpleConsumer",
    "errors": (
        "BrokerError Corrupt InvalidSchema KafkaIOError NetworkError OffsetOutOfRange RegistryError SchemaNotFound "
        "SchemaRegistryError TooLarge Unsupported Where WireError"
    ),
    "model": "Bounds Broker BrokerPartition Generation OffsetRange TopicEntry TopicPartition",
    "producer.audit_counts": "AuditCounts",
    "producer.callbacks": "CallbackHandler EventHandler",
    "producer.encoder": "Encoder TextEncoder",
    "producer.message": "Delivered DeliveryFailure Message ProducerClosed QueueFull Undelivered",
    "producer.opening": "open_producer",
    "producer.partitioner": "Partitioner",
    "producer.producer": "Producer",
    "producer.settings": "ProducerSettings Queueing",
    "producer.transactions": "TransactionError",
    "reader.reader": "PlannedRange ReadSettings",
    "reader.source": "Source",
    "records.build": "Record log_messages message_set record_batch",
    "records.decoded_batch": "DecodeLimits DecodedBatch",
    "records.decoder": "decode",
    "records.record_set": "RequestedOffsets",
    "records.v07.decoder": "decode_v07",
    "schema_registry.client": "SchemaRegistry",
    "schema_registry.schemas": "RegisteredSchema",
    "schema_registry.settings": "SchemaRegistrySettings",
    "values.avro.columns": "columns_of_avro",
    "values.avro.decoder": "AvroDecoder",
    "values.avro.schema": "parse_avro",
    "values.debezium.columns": "columns_of_debezium columns_of_debezium_json",
    "values.debezium.decoder": "DebeziumDecoder",
    "values.decoding": "DecodedValues FailedValue",
    "values.json.decoder": "FramedJsonDecoder JsonDecoder",
    "values.json.inference": "columns_of_sample grow_by_sample",
    "values.json.schema": "columns_of_json_schema",
    "values.json.settings": "columns_of_settings",
    "values.protobuf.columns": "columns_of_protobuf",
    "values.protobuf.decoder": "ProtobufDecoder",
    "values.protobuf.descriptors": "parse_descriptor_set parse_protobuf",
    "values.protobuf.files": "read_protobuf",
    "values.text": "TextDecoder",
}
"""The public names of each module below `kafka_io`."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)  # noqa: PLE0605 - type checkers take the names from the imports below

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster as Cluster
    from kafka_io.cluster.opening import open_cluster as open_cluster
    from kafka_io.consumer.connector.connector import ConsumerConnector as ConsumerConnector
    from kafka_io.consumer.connector.stream import MessageStream as MessageStream
    from kafka_io.consumer.fetched import (
        ConsumedMessage as ConsumedMessage,
    )
    from kafka_io.consumer.fetched import (
        FetchPosition as FetchPosition,
    )
    from kafka_io.consumer.fetched import (
        FetchResult as FetchResult,
    )
    from kafka_io.consumer.group.admin import (
        GroupDescription as GroupDescription,
    )
    from kafka_io.consumer.group.admin import (
        GroupListing as GroupListing,
    )
    from kafka_io.consumer.group.admin import (
        GroupMember as GroupMember,
    )
    from kafka_io.consumer.group.admin import (
        Lag as Lag,
    )
    from kafka_io.consumer.group.admin import (
        describe_group as describe_group,
    )
    from kafka_io.consumer.group.admin import (
        list_groups as list_groups,
    )
    from kafka_io.consumer.group.consumer import GroupConsumer as GroupConsumer
    from kafka_io.consumer.group.consumer import RebalanceListener as RebalanceListener
    from kafka_io.consumer.group.fetcher import ConsumedBatch as ConsumedBatch
    from kafka_io.consumer.group.offset_reset import OffsetReset as OffsetReset
    from kafka_io.consumer.group.settings import GroupSettings as GroupSettings
    from kafka_io.consumer.group_offsets import (
        GroupOffsets as GroupOffsets,
    )
    from kafka_io.consumer.group_offsets import (
        OffsetStorage as OffsetStorage,
    )
    from kafka_io.consumer.group_offsets import (
        group_offsets as group_offsets,
    )
    from kafka_io.consumer.membership import GroupMembership as GroupMembership
    from kafka_io.consumer.simple import SimpleConsumer as SimpleConsumer
    from kafka_io.errors import (
        BrokerError as BrokerError,
    )
    from kafka_io.errors import (
        Corrupt as Corrupt,
    )
    from kafka_io.errors import (
        InvalidSchema as InvalidSchema,
    )
    from kafka_io.errors import (
        KafkaIOError as KafkaIOError,
    )
    from kafka_io.errors import (
        NetworkError as NetworkError,
    )
    from kafka_io.errors import (
        OffsetOutOfRange as OffsetOutOfRange,
    )
    from kafka_io.errors import (
        RegistryError as RegistryError,
    )
    from kafka_io.errors import (
        SchemaNotFound as SchemaNotFound,
    )
    from kafka_io.errors import (
        SchemaRegistryError as SchemaRegistryError,
    )
    from kafka_io.errors import (
        TooLarge as TooLarge,
    )
    from kafka_io.errors import (
        Unsupported as Unsupported,
    )
    from kafka_io.errors import (
        Where as Where,
    )
    from kafka_io.errors import (
        WireError as WireError,
    )
    from kafka_io.model import (
        Bounds as Bounds,
    )
    from kafka_io.model import (
        Broker as Broker,
    )
    from kafka_io.model import (
        BrokerPartition as BrokerPartition,
    )
    from kafka_io.model import (
        Generation as Generation,
    )
    from kafka_io.model import (
        OffsetRange as OffsetRange,
    )
    from kafka_io.model import (
        TopicEntry as TopicEntry,
    )
    from kafka_io.model import (
        TopicPartition as TopicPartition,
    )
    from kafka_io.producer.audit_counts import AuditCounts as AuditCounts
    from kafka_io.producer.callbacks import CallbackHandler as CallbackHandler
    from kafka_io.producer.callbacks import EventHandler as EventHandler
    from kafka_io.producer.encoder import Encoder as Encoder
    from kafka_io.producer.encoder import TextEncoder as TextEncoder
    from kafka_io.producer.message import (
        Delivered as Delivered,
    )
    from kafka_io.producer.message import (
        DeliveryFailure as DeliveryFailure,
    )
    from kafka_io.producer.message import (
        Message as Message,
    )
    from kafka_io.producer.message import (
        ProducerClosed as ProducerClosed,
    )
    from kafka_io.producer.message import (
        QueueFull as QueueFull,
    )
    from kafka_io.producer.message import (
        Undelivered as Undelivered,
    )
    from kafka_io.producer.opening import open_producer as open_producer
    from kafka_io.producer.partitioner import Partitioner as Partitioner
    from kafka_io.producer.producer import Producer as Producer
    from kafka_io.producer.settings import ProducerSettings as ProducerSettings
    from kafka_io.producer.settings import Queueing as Queueing
    from kafka_io.producer.transactions import TransactionError as TransactionError
    from kafka_io.reader.reader import PlannedRange as PlannedRange
    from kafka_io.reader.reader import ReadSettings as ReadSettings
    from kafka_io.reader.source import Source as Source
    from kafka_io.records.build import (
        Record as Record,
    )
    from kafka_io.records.build import (
        log_messages as log_messages,
    )
    from kafka_io.records.build import (
        message_set as message_set,
    )
    from kafka_io.records.build import (
        record_batch as record_batch,
    )
    from kafka_io.records.decoded_batch import DecodedBatch as DecodedBatch
    from kafka_io.records.decoded_batch import DecodeLimits as DecodeLimits
    from kafka_io.records.decoder import decode as decode
    from kafka_io.records.record_set import RequestedOffsets as RequestedOffsets
    from kafka_io.records.v07.decoder import decode_v07 as decode_v07
    from kafka_io.schema_registry.client import SchemaRegistry as SchemaRegistry
    from kafka_io.schema_registry.schemas import RegisteredSchema as RegisteredSchema
    from kafka_io.schema_registry.settings import SchemaRegistrySettings as SchemaRegistrySettings
    from kafka_io.values.avro.columns import columns_of_avro as columns_of_avro
    from kafka_io.values.avro.decoder import AvroDecoder as AvroDecoder
    from kafka_io.values.avro.schema import parse_avro as parse_avro
    from kafka_io.values.debezium.columns import columns_of_debezium as columns_of_debezium
    from kafka_io.values.debezium.columns import columns_of_debezium_json as columns_of_debezium_json
    from kafka_io.values.debezium.decoder import DebeziumDecoder as DebeziumDecoder
    from kafka_io.values.decoding import DecodedValues as DecodedValues
    from kafka_io.values.decoding import FailedValue as FailedValue
    from kafka_io.values.json.decoder import FramedJsonDecoder as FramedJsonDecoder
    from kafka_io.values.json.decoder import JsonDecoder as JsonDecoder
    from kafka_io.values.json.inference import columns_of_sample as columns_of_sample
    from kafka_io.values.json.inference import grow_by_sample as grow_by_sample
    from kafka_io.values.json.schema import columns_of_json_schema as columns_of_json_schema
    from kafka_io.values.json.settings import columns_of_settings as columns_of_settings
    from kafka_io.values.protobuf.columns import columns_of_protobuf as columns_of_protobuf
    from kafka_io.values.protobuf.decoder import ProtobufDecoder as ProtobufDecoder
    from kafka_io.values.protobuf.descriptors import parse_descriptor_set as parse_descriptor_set
    from kafka_io.values.protobuf.descriptors import parse_protobuf as parse_protobuf
    from kafka_io.values.protobuf.files import read_protobuf as read_protobuf
    from kafka_io.values.text import TextDecoder as TextDecoder


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used (PEP 562)."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'kafka_io' has no attribute {name!r}")
    value = getattr(import_module(f"kafka_io.{module}"), name)
    globals()[name] = value  # the next use finds it without this function
    return value


def __dir__() -> list[str]:
    """The public names, also those that were not used yet."""
    return sorted(_MODULES)
