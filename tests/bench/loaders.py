"""The loaders that the bench compares: each is a module of peers/ with a function `ready`, run in its own process."""

from collections.abc import Mapping
from dataclasses import dataclass

SPARK = "Spark's Kafka source"
CONFLUENT = "confluent-kafka"
KAFKARROW = "kafkarrow"
AIOKAFKA = "aiokafka"
KAFKA_PYTHON = "kafka-python"
OURS = "ours"
OURS_IN_SPARK = "ours in Spark"
OURS_TYPED = "ours, JSON to columns"
SPARK_TYPED = "Spark's Kafka source, from_json"
OURS_AVRO = "ours, Avro to columns"
SPARK_AVRO = "Spark's Kafka source, from_avro"
CONFLUENT_AVRO = "confluent-kafka, AvroDeserializer"
COLD_SPARK = "cold job: Spark's Kafka source"
COLD_OURS = "cold job: ours"
COLD_OURS_FIRST = "cold job: ours, first on this machine"
COLD_OURS_SPREAD = "cold job: ours, spread by Spark"
COLD_EMPTY = "cold job: empty"
FIRST_TASK = "first task"
FIRST_TASK_EVER = "first task, first on this machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """How a loader is run.

    Args:
        module: the name of its module in peers/.
        whole_process: measure the process from its start to its end; otherwise only the load, after all imports.
        new_cache: start with an empty cache of compiled kernels, as on a new machine.
        writes: whether the loader writes the topic's rows to files, which are then checked.
        typed: whether the files have columns for the fields of the values, and no column for their bytes.
    """

    module: str
    whole_process: bool = False
    new_cache: bool = False
    writes: bool = True
    typed: bool = False


LOADERS: Mapping[str, Loader] = {
    SPARK: Loader(module="spark"),
    CONFLUENT: Loader(module="confluent_kafka"),
    KAFKARROW: Loader(module="kafkarrow"),
    AIOKAFKA: Loader(module="aiokafka"),
    KAFKA_PYTHON: Loader(module="kafka_python"),
    OURS: Loader(module="ours"),
    OURS_IN_SPARK: Loader(module="ours_in_spark"),
    OURS_TYPED: Loader(module="ours_typed", typed=True),
    SPARK_TYPED: Loader(module="spark_typed", typed=True),
    OURS_AVRO: Loader(module="ours_typed", typed=True),
    SPARK_AVRO: Loader(module="spark_typed", typed=True),
    CONFLUENT_AVRO: Loader(module="confluent_avro", typed=True),
    COLD_SPARK: Loader(module="cold_spark", whole_process=True),
    COLD_OURS: Loader(module="cold_ours", whole_process=True),
    COLD_OURS_FIRST: Loader(module="cold_ours", whole_process=True, new_cache=True),
    COLD_OURS_SPREAD: Loader(module="cold_ours_spread", whole_process=True),
    COLD_EMPTY: Loader(module="cold_empty", whole_process=True, writes=False),
    FIRST_TASK: Loader(module="first_task"),
    FIRST_TASK_EVER: Loader(module="first_task", new_cache=True),
}
