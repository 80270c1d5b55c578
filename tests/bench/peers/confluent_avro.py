"""confluent-kafka with its AvroDeserializer: a dict per value, which pyarrow turns into columns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.bench.cases import Job
from tests.bench.files import PartitionFiles, disable_cycle_collector
from tests.bench.orders import COLUMNS
from tests.bench.peers import confluent_kafka


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, after one load outside the clock."""
    disable_cycle_collector()
    _load(job.warming())
    yield lambda: _load(job)


def _load(job: Job) -> None:
    context = SerializationContext(job.topic, MessageField.VALUE)
    with SchemaRegistryClient({"url": job.registry}) as client:
        deserializer = AvroDeserializer(client)
        with PartitionFiles(job.folder, job.topic, COLUMNS) as files:
            for partition, messages in confluent_kafka.consumed(job):
                rows = confluent_kafka.rows(messages)
                files.write(partition, replace(rows, values=[deserializer(value, context) for value in rows.values]))
