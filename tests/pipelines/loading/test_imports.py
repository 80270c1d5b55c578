"""The modules that each Spark worker and each verify import."""

import subprocess
import sys


def test_a_worker_imports_nothing_that_only_the_driver_needs() -> None:
    heavy = {"dagster", "duckdb", "pydantic", "kazoo", "rich", "resources.settings"}
    code = f"import sys, pipelines.loading.fetch; sys.exit(str({heavy} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip() == "set()"


def test_a_verify_imports_nothing_that_only_loads_need() -> None:  # fault U19
    """Decoders, compilers and Spark would take more memory than the proof of a long history."""
    heavy = {"dagster", "llvmlite", "numba", "pydantic", "pyspark", "kazoo", "rich", "kafka_io.records.decoder"}
    code = f"import sys, pipelines.loading.verify; sys.exit(str({heavy} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip() == "set()"
