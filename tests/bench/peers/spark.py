"""Spark's own Kafka source to Parquet in a running session: default settings, except for the codec and the memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from resources.machines.spark import close_session, open_session
from tests.bench.cases import PARQUET_CODEC, Job
from tests.bench.peers.spark_job import SOURCE_SETTINGS

_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, in a session that has loaded once."""
    session = open_session({**SOURCE_SETTINGS, "spark.jars": job.jars})
    try:
        load(session, job.bootstrap, job.warm_up, job.folder.with_name("warm-up"))
        yield lambda: load(session, job.bootstrap, job.topic, job.folder)
    finally:
        close_session()


def load(session: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
    """Write all records of the topic. Each partition is one task and one file."""
    rows = read(session, bootstrap, topic).select(*_COLUMNS)
    rows.write.mode("overwrite").option("compression", PARQUET_CODEC).parquet(str(folder))


def read(session: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """All records of the topic, each with its headers."""
    reader = session.read.format("kafka").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "endingOffsets": "latest",
            "includeHeaders": "true",
        }
    )
    return reader.load()
