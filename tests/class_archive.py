"""Makes an archive of the classes that a Spark session loads: a JVM with it needs half of the CPU time to start.

`make tools` runs this module. The archive (class data sharing, java(1)) belongs to one Java and one set of jars. A JVM
that cannot use it ignores it, and tests also run without it, only longer. The options are in `short_lived_jvm`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark

from resources.machines.java import JavaNotFound, find_java
from tests.short_lived_jvm import ARCHIVE, LOG_RULES, NO_CONF, OPTIONS

_MADE_FOR = ARCHIVE.with_suffix(".made-for")
_LONGEST_S = 600
_SESSION_S = 300


def make() -> None:
    """Make the archive, unless there is one for this Java and these jars."""
    try:
        java = find_java()
    except JavaNotFound:
        return  # the tests that need it say so
    made_for = _version_of(java) + _jars()
    if ARCHIVE.exists() and _MADE_FOR.exists() and _MADE_FOR.read_text() == made_for:
        return
    sys.stdout.write("Preparing an archive of Spark's classes, with which tests start faster\n")
    sys.stdout.flush()
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    partial = ARCHIVE.with_suffix(".partial")
    try:
        completed = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.class_archive", str(partial)],
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
        output = completed.stdout + completed.stderr
    except subprocess.TimeoutExpired:
        output = f"no archive after {_LONGEST_S} s"
    if not partial.exists():
        sys.stderr.write(f"There is no archive of Spark's classes, so tests take longer: {output[-2000:]}\n")
        return
    partial.rename(ARCHIVE)
    _MADE_FOR.write_text(made_for)


def _version_of(java: Path) -> str:
    command = [str(java / "bin" / "java"), "-version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def _jars() -> str:
    jars = Path(pyspark.__file__).parent / "jars"
    return "".join(f"{jar.stat().st_mtime_ns} {jar.stat().st_size} {jar}\n" for jar in sorted(jars.glob("*.jar")))


def _run_session(archive: str) -> None:
    """Run a job in a session whose JVM writes the archive when it ends."""
    os.environ["SPARK_CONF_DIR"] = str(NO_CONF)
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join((*OPTIONS, LOG_RULES, f"-XX:ArchiveClassesAtExit={archive}"))
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only this process needs it

    from resources.machines.spark import open_session  # noqa: PLC0415 - same

    session = open_session({"master": "local[2,2]", "spark.ui.enabled": "false"})
    frame = session.createDataFrame(pa.table({"id": pa.array(range(4), pa.int32()), "text": ["text"] * 4}))
    assert len(frame.repartitionById(2, "id").mapInArrow(lambda batches: batches, "id int, text string").collect()) == 4
    jvm = SparkSession._instantiatedSession.sparkContext._gateway.proc  # type: ignore[union-attr] # a classic session
    session.stop()
    jvm.stdin.close()  # Spark's gateway ends when its input does
    jvm.wait(_SESSION_S)


if __name__ == "__main__":
    _run_session(sys.argv[1])
