"""Spark writes to Kafka and reads the whole topic. It needs a new process: a JVM takes jars only when it starts.

Arguments: the jars, the broker, the topic. One line of JSON per record of the topic: partition, offset, key, value.
"""

import sys

from pyspark.sql.functions import col, struct, to_json

from resources.machines.spark import close_session, open_session

_WRITTEN = 50


def run(jars: str, bootstrap: str, topic: str) -> None:
    """Write records whose values are numbers, then print all records of the topic."""
    session = open_session({"master": "local[2]", "spark.ui.enabled": "false", "spark.jars": jars})
    kafka = {"kafka.bootstrap.servers": bootstrap}
    numbers = session.range(_WRITTEN).select(col("id").cast("string").alias("value"))
    numbers.write.format("kafka").options(**kafka, topic=topic).save()
    records = session.read.format("kafka").options(**kafka, subscribe=topic, startingOffsets="earliest").load()
    texts = records.select("partition", "offset", col("key").cast("string"), col("value").cast("string"))
    for row in texts.select(to_json(struct("*")).alias("line")).collect():
        sys.stdout.write(row["line"] + "\n")
    close_session()


if __name__ == "__main__":
    run(*sys.argv[1:])
