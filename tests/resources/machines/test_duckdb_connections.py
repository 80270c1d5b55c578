"""DuckDB prints no progress bar among the results of a command."""

import subprocess
import sys

_PROGRAM = """
from resources.machines.duckdb_connections import connect_duckdb
connection = connect_duckdb(config={"threads": 1})
[(shows_bar, threads)] = connection.execute(
    "select current_setting('enable_progress_bar'), current_setting('threads')").fetchall()
print(shows_bar, threads)
"""


def test_a_process_without_a_main_file_prints_no_progress_bar() -> None:
    printed = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True, timeout=300)
    assert printed.stdout == "False 1\n"
