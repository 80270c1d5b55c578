"""Starts the Python workers of a local Spark session: it imports what a fetch needs once, and then forks each worker.

Spark runs this module instead of `pyspark.daemon`, with the same protocol. Otherwise every worker would import pyarrow,
numba and our code again, which costs more CPU time than a small slice. Executors on other machines receive our code
with their first task, so they run Spark's own daemon.
"""

from importlib import import_module

from pyspark.daemon import manager

_FOR_WORKERS = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.worker",
    "kafka_io.reader.reader",
    "kafka_io.reader.modern_partition",
    "kafka_io.reader.source",
    "kafka_io.reader.v07.reader",
    "resources.stores.table_files",
)

if __name__ == "__main__":
    for name in _FOR_WORKERS:
        import_module(name)
    manager()
