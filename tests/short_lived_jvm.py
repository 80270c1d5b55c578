"""Java options for processes that live for seconds: most of their work is to start.

Without the second compiler and a parallel collector a local Spark session costs 16 s of CPU instead of 26 s.
"""

import os

OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
EXECUTORS = {"spark.executor.extraJavaOptions": " ".join(OPTIONS)}
"""Spark settings for the executors of a cluster."""

# Spark's scripts read these for drivers, for the small JVM that builds a driver's command, and for masters and workers.
_VARIABLES = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS")


def set_spark_options() -> None:
    """Let all Spark processes that this process and its children start use these options."""
    for variable in _VARIABLES:
        os.environ.setdefault(variable, " ".join(OPTIONS))
