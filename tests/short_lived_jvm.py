"""Java options for processes that run for seconds and spend most of their time on starting.

Without the optimizing compiler and the parallel garbage collector, a local Spark session costs 16 s of CPU, not 26 s.
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
