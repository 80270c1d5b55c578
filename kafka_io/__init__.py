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
from typing import Any

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

__all__ = sorted(_MODULES)  # noqa: PLE0605 - type checkers read __init__.pyi


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
