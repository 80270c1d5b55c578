"""The modules that each Spark worker imports when it starts."""

import subprocess
import sys


def test_a_worker_imports_nothing_that_only_the_driver_needs() -> None:
    heavy = {"dagster", "duckdb", "pydantic", "kazoo", "rich", "resources.settings"}
    code = f"import sys, pipelines.loading.fetch; sys.exit(str({heavy} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip() == "set()"
