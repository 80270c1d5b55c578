"""Starts the Python workers of a local Spark session: it imports what a fetch needs once, and then forks each worker.

Spark runs this module instead of `pyspark.daemon`, with the same protocol. Otherwise every worker would import pyarrow,
numba and our code again, which costs more CPU time than a small slice. Executors on other machines receive our code
with their first task, so they run Spark's own daemon.
"""

import os
from importlib import import_module
from typing import Any

from pyspark import worker
from pyspark.daemon import manager

_FOR_WORKERS = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "kafka_io.reader.reader",
    "kafka_io.reader.modern_partition",
    "kafka_io.reader.source",
    "kafka_io.reader.v07.reader",
    "resources.stores.table_files",
)
_run_task = worker.main


def run_task(infile: Any, outfile: Any) -> None:
    """Run a task of Spark, and end this process if Spark has closed the connection: nobody reads what is left.

    Spark closes it if the task is cancelled, or if it needs fewer workers. Its own daemon then prints the traceback of
    a BrokenPipeError (fault F06).
    """
    try:
        try:
            _run_task(infile, outfile)
        finally:
            outfile.flush()
    except (BrokenPipeError, ConnectionResetError):
        os._exit(1)


if __name__ == "__main__":
    for name in _FOR_WORKERS:
        import_module(name)
    worker.main = run_task
    manager()
