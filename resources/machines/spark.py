"""Spark sessions, classic and Connect: their options, and the code that executors receive."""

import logging
import os
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_io.errors import printable
from resources.errors import SparkFailed
from resources.extras import check_extra
from resources.machines.java import find_java
from resources.machines.spark_job import is_remote, spark_errors

if TYPE_CHECKING:  # Spark is an extra, and a small load works without it
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*,4]"
_SHIPPED = ("kafka_io", "resources", "pipelines")
_NOT_SHIPPED = "kafka_io/testing"  # executors never start an embedded broker
_SOCKETS = "spark.python.unix.domain.socket.enabled"
_DEFAULTS = {
    "spark.app.name": "penstock",
    _SOCKETS: "true",  # halves the cost of a task (decision D03)
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.adaptive.enabled": "false",  # a slice group is a task: nothing to coalesce
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_FIRST_COMPILER_ONLY = "-XX:TieredStopAtLevel=1"
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.python.daemon.module": "resources.machines.spark_daemon",
}


def for_fetches(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for a session that only fetches slices; `settings` are those of `[spark]`.

    Java then only passes tasks and facts on, so its optimizing compiler costs more than it gains (decision D38). The
    user's options follow ours, so they win. The Java of a cluster or of a Connect server is not ours.
    """
    if not _address(settings).startswith("local"):
        return dict(settings)
    options = f"{_FIRST_COMPILER_ONLY} {settings.get(_JAVA_OPTIONS, '')}".rstrip()
    return {**settings, _JAVA_OPTIONS: options}


def open_session(settings: Mapping[str, str]) -> "SparkSession":
    """A session with the settings of `[spark]`: `remote` for Spark Connect, otherwise `master`, and Spark's own keys.

    A session that is open in this process is reused. The executors receive the code of Penstock; they need only Python
    and the locked packages.

    Raises:
        ExtraMissing: Spark is not installed.
        SparkFailed: the session does not start.
    """
    check_extra("spark", "a Spark session")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - see TYPE_CHECKING

    _prepare_environment(settings)
    _silence_py4j()
    builder = SparkSession.builder
    builder = builder.remote(settings["remote"]) if "remote" in settings else builder.master(_address(settings))
    for key, value in _options(settings).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except spark_errors() as error:
        raise SparkFailed(
            f"Spark does not start with the address {printable(_address(settings))}; check [spark] in the settings, or "
            "see Spark's reason with `penstock --debug`"
        ) from error
    session.addArtifacts(str(_shipped_code()), pyfile=True)
    return session


def _silence_py4j() -> None:
    """Let py4j log no stack traces: its errors are raised too, and Ctrl-C is reported in one line (fault U11)."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_no_interrupt)  # py4j logs an interrupt with the root logger itself


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))


def ui_of(session: "SparkSession") -> str | None:
    """The URL of Spark's own UI while the session lasts; None if the UI is off or belongs to a Connect server."""
    return None if is_remote(session) else session.sparkContext.uiWebUrl


def close_session() -> None:
    """End the session of this process, if there is one, and the work of its JVM."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession  # noqa: PLC0415 - see TYPE_CHECKING

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


def _address(settings: Mapping[str, str]) -> str:
    """The address of Spark: a Connect server or a master."""
    return settings.get("remote") or settings.get("master", DEFAULT_MASTER)


def _options(settings: Mapping[str, str]) -> dict[str, str]:
    """The options of a session: our defaults, if they are allowed there, and those of the settings."""
    address = _address(settings)
    defaults = {**_DEFAULTS, **(_LOCAL if address.startswith("local") else {})}
    if address.startswith("sc://"):
        # A Connect server runs already. It refuses options that are not for a session, with a warning for each.
        defaults = {key: value for key, value in defaults.items() if key.startswith("spark.sql.")}
    if address == "yarn":
        del defaults[_SOCKETS]  # the path of a container's folder is too long for a socket, so every task would fail
    return {**defaults, **{key: value for key, value in settings.items() if key not in ("master", "remote")}}


def _prepare_environment(settings: Mapping[str, str]) -> None:
    """Set the environment of the JVM and the local workers. Variables that the user has set stay unchanged."""
    os.environ["JAVA_HOME"] = str(find_java())
    # spark-submit evaluates the setting spark.pyspark.python. A driver without spark-submit reads only the variable.
    python = settings.get("spark.pyspark.python")
    if python:
        os.environ["PYSPARK_PYTHON"] = python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_conf"))
    if _address(settings).startswith("local"):  # executors on other machines must be able to reach the driver
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _put_on_python_path(str(Path(__file__).parents[2]))  # where the workers' daemon finds its module


def _put_on_python_path(folder: str) -> None:
    """Let the Python processes that this process starts find the modules in a folder."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in folders:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, folders)])


@cache
def _code_folder() -> tempfile.TemporaryDirectory[str]:
    """The folder of the zip. It exists as long as this process, because executors that start later get the zip too."""
    return tempfile.TemporaryDirectory(prefix="penstock-")


def _shipped_code() -> Path:
    """A zip archive of our packages for the executors. Its name changes whenever a file in it changes."""
    root = Path(__file__).parents[2]
    all_files = (file for package in _SHIPPED for file in (root / package).rglob("*.py"))
    files = sorted(file for file in all_files if not file.is_relative_to(root / _NOT_SHIPPED))
    stamp = uuid.uuid5(uuid.NAMESPACE_OID, "".join(f"{file}{file.stat().st_mtime_ns}" for file in files)).hex
    target = Path(_code_folder().name) / f"penstock-{stamp}.zip"
    if not target.exists():
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.relative_to(root))
    return target
