"""The modules that each Spark worker, each verify and each process of Dagster import."""

import subprocess
import sys

import pytest

WORKER = {"dagster", "duckdb", "pandas", "pydantic", "kazoo", "rich", "resources.settings"}
# Decoders, compilers and Spark would take more memory than the proof of a long history.
VERIFY = {"dagster", "llvmlite", "numba", "pandas", "pydantic", "pyspark", "kazoo", "rich", "kafka_io.records.decoder"}


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("pipelines.loading.fetch", WORKER),
        ("pipelines.loading.verify", VERIFY),  # fault U19
        ("pipelines.defs.build", {"duckdb", "pandas", "pyarrow.dataset"}),
    ],
)
def test_a_process_imports_nothing_that_only_other_processes_need(module: str, unneeded: set[str]) -> None:
    code = f"import sys, {module}; sys.exit(str({unneeded} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip() == "set()"
