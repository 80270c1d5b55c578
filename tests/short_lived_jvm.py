"""Java options for processes that run for seconds and spend most of their time on starting.

Without the optimizing compiler and the parallel garbage collector, a local Spark session costs 16 s of CPU, not 26 s.
With the archive of Spark's classes (see class_archive.py) it costs 8 s.
"""

import os
from pathlib import Path

_ROOT = Path(__file__).parents[1]
OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
ARCHIVE = _ROOT / ".cache" / "spark-classes.jsa"
# An archive works only if no folder with files is on the class path, where Spark puts the folder of its configuration.
# So that folder does not exist, and an option has the rules for logs.
NO_CONF = _ROOT / ".cache" / "no-spark-conf"
LOG_RULES = (
    f"-Dlog4j2.configurationFile={(_ROOT / 'resources' / 'machines' / 'spark_conf' / 'log4j2.properties').as_uri()}"
)


def with_archive(archive: Path) -> tuple[str, ...]:
    """The options that let a JVM use an archive of classes. One that cannot use it says nothing about it."""
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:class+path=off")


_SPARK_OPTIONS = (*OPTIONS, *with_archive(ARCHIVE)) if ARCHIVE.exists() else OPTIONS
EXECUTORS = {"spark.executor.extraJavaOptions": " ".join(_SPARK_OPTIONS)}
"""Spark settings for the executors of a cluster."""


def set_spark_options() -> None:
    """Let all Spark processes that this process and its children start use these options."""
    os.environ.setdefault("SPARK_CONF_DIR", str(NO_CONF))
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join((*_SPARK_OPTIONS, LOG_RULES)))
    # The small JVM that builds a driver's command, and masters and workers.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(OPTIONS))
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", " ".join(_SPARK_OPTIONS))
