"""Publishing plain values: batches without keys that go to the partitions of a topic in turn.

A value can also be a JSON document that is encoded with a schema of a schema registry.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice

from kafka_io.errors import InvalidValue, Unsupported, Where, error_context, printable
from kafka_io.model import BrokerPartition
from kafka_io.producer.message import Delivered, Message, Undelivered
from kafka_io.producer.producer import Producer
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.avro.writer import avro_from_json

_Encode = Callable[[bytes], bytes]


def publish_values(
    producers: Sequence[Producer[Delivered]],
    topic: str,
    values: Iterable[bytes],
    *,
    batch_size: int = 500,
    on_sent: Callable[[int], None] = lambda _count: None,
) -> int:
    """Send values as messages without keys, one batch to each partition in turn; returns how many were sent.

    On return the brokers have all of them. In 0.7 every broker that received a message has also registered the topic,
    so that consumers find it. Without values nothing is sent, and no topic is created.

    Args:
        producers: synchronous producers of one cluster that send in turn; several of them alternate between codecs.
        topic: it need not exist if the brokers create topics on first use.
        values: one message each.
        batch_size: messages that are sent together.
        on_sent: called after each batch with the number of its messages.

    Raises:
        NodeMalformed: the name is not a valid topic name.
        KafkaIOError: the first message that is not confirmed; messages before it were sent, later ones were not.
    """
    count = 0
    written: set[BrokerPartition] = set()
    with error_context(Where(topic=topic)):
        turns = zip(_batches(values, batch_size), cycle(producers), _partition_turns(producers[0], topic), strict=False)
        for batch, producer, partition in turns:
            _send(producer, [Message(topic=topic, value=value, partition=partition) for value in batch])
            written.add(partition)
            count += len(batch)
            on_sent(len(batch))
        producers[0].wait_until_registered(topic, written)
    return count


def _batches(values: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Lists of `size` values each, in order; the last may be shorter."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def _partition_turns(producer: Producer[Delivered], topic: str) -> Iterator[BrokerPartition]:
    """The topic's partitions in turn, without end.

    A broker of 0.7 that has no message of a topic lists none of its partitions and accepts only partition 0. It
    registers the others soon after the first message, so they are listed again after the first round.
    """
    first_round = producer.partitions_for(topic)
    yield from first_round
    producer.wait_until_registered(topic, first_round)
    yield from cycle(producer.partitions_for(topic))


def _send(producer: Producer[Delivered], messages: Sequence[Message]) -> None:
    try:
        producer.send_many(messages)
    except Undelivered as error:
        raise error.failures[0].error from error


def registered_encoder(schema: RegisteredSchema) -> _Encode:
    """A function from a JSON document to a value: a zero byte, the id of the schema in four bytes, and the body.

    The body of an Avro schema is Avro (see kafka_io/values/avro/writer.py), that of a JSON schema is the document
    itself, which is not compared with the schema. The function raises InvalidValue.

    Raises:
        InvalidSchema: the schema is not valid.
        Unsupported: it is a Protobuf schema.
    """
    if schema.schema_type not in _ENCODERS:
        raise Unsupported(f"values of {schema.schema_type} schemas cannot be encoded from JSON, only AVRO and JSON")
    encode, frame = _ENCODERS[schema.schema_type](schema), b"\0" + schema.id.to_bytes(4, "big")
    return lambda document: frame + encode(document)


def _avro(schema: RegisteredSchema) -> _Encode:
    avro = parse_avro(schema.text, [reference.text for reference in schema.references])
    return lambda document: avro_from_json(avro, document)


def _json(_schema: RegisteredSchema) -> _Encode:
    def encode(document: bytes) -> bytes:
        try:
            json.loads(document)
        except (ValueError, RecursionError) as error:
            raise InvalidValue(f"the value is not JSON: {printable(error)}") from error
        return document

    return encode


_ENCODERS: Mapping[SchemaType, Callable[[RegisteredSchema], _Encode]] = {
    SchemaType.AVRO: _avro,
    SchemaType.JSON: _json,
}
