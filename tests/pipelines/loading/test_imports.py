"""The modules that each Spark worker, each verify and each process of Dagster import."""

import subprocess
import sys

import pytest

# A worker of Spark imports pyspark's part for workers before, and deltalake only if the lake is in an object store.
WORKER = {
    "dagster",
    "deltalake",
    "duckdb",
    "google.protobuf",
    "pandas",
    "pydantic",
    "kazoo",
    "pyspark",
    "rich",
    "resources.settings",
}
# A load with nothing new is over in the time that these take.
LOAD = {"dagster", "duckdb", "google.protobuf", "kafka_io.producer.producer", "pandas", "py4j", "pyspark"}
# Decoders, compilers and Spark would take more memory than the proof of a long history.
VERIFY = {"dagster", "llvmlite", "numba", "pandas", "pydantic", "pyspark", "kazoo", "rich", "kafka_io.records.decoder"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("pipelines.loading.fetch", WORKER),
        ("pipelines.loading.load", LOAD),
        ("pipelines.loading.verify", VERIFY),  # fault U19
        ("pipelines.defs.build", {"duckdb", "pandas", "pyarrow.dataset"}),
    ],
)
def test_a_process_imports_nothing_that_only_other_processes_need(module: str, unneeded: set[str]) -> None:
    code = f"import sys, {module}; sys.exit(str({unneeded} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip() == "set()"
