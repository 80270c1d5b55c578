"""Spark's own Kafka source to Parquet in a running session, with a column for each field of JSON or Avro values."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Column, SparkSession, functions
from pyspark.sql.avro.functions import from_avro

from resources.machines.spark import close_session, open_session
from tests.bench.cases import PARQUET_CODEC, Job
from tests.bench.data import EVENT_COLUMNS
from tests.bench.orders import FIELDS, schema_of
from tests.bench.peers import spark
from tests.bench.peers.spark_job import SOURCE_SETTINGS

_SCHEMA = ", ".join(f"`{name}` {type_}" for name, type_ in EVENT_COLUMNS.items())
_KAFKA = ("key", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, in a session that has loaded once."""
    session = open_session({**SOURCE_SETTINGS, "spark.jars": job.jars})
    try:
        _load(session, job, job.warm_up, job.folder.with_name("warm-up"))
        yield lambda: _load(session, job, job.topic, job.folder)
    finally:
        close_session()


def _load(session: SparkSession, job: Job, topic: str, folder: Path) -> None:
    """Write all records of the topic. Each partition is one task and one file."""
    kafka = [functions.col(name).alias(f"_kafka_{name}") for name in _KAFKA]
    rows = spark.read(session, job.bootstrap, topic).withColumn("decoded", _decoded(job)).select("decoded.*", *kafka)
    rows.write.mode("overwrite").option("compression", PARQUET_CODEC).parquet(str(folder))


def _decoded(job: Job) -> Column:
    if job.registry is None:
        return functions.from_json(functions.col("value").cast("string"), _SCHEMA)
    # Spark knows neither registries nor frames: it gets the schema, and the value behind the 5 bytes of its frame.
    return from_avro(functions.expr("substring(value, 6)"), json.dumps(schema_of(FIELDS)))
