"""The process of a command imports no pandas, rarely looks for cycles, and ends with its own exit code.

Processes of others stay as they are.
"""

import signal
import subprocess
import sys

import pytest

ARRAY = "import sys, gc, pyarrow as pa; pa.array([1])"
KEPT_OUT = "from resources.machines import own_process; own_process.begin(); own_process.keep_pandas_out()"


def printed(*statements: str) -> str:
    process = subprocess.run([sys.executable, "-c", "\n".join(statements)], capture_output=True, text=True, check=True)
    return process.stdout.strip()


@pytest.mark.slow
def test_pyarrow_imports_pandas_only_in_processes_of_others() -> None:
    is_imported = "print('pandas' in sys.modules)"
    assert printed(ARRAY, is_imported) == "True"  # otherwise nobody has to keep pandas out
    assert printed(KEPT_OUT, ARRAY, is_imported) == "False"
    not_ours = "from resources.machines import own_process; own_process.keep_pandas_out()"
    assert printed(not_ours, ARRAY, is_imported) == "True"


@pytest.mark.slow
def test_pandas_can_be_used_afterwards() -> None:
    frame = "frame = pa.table({'a': [1]}).to_pandas(); print(type(frame).__module__.split('.')[0])"
    array = "import pandas as pd; print(pa.array(pd.Series([1, None])).null_count)"
    assert printed(KEPT_OUT, ARRAY, frame, array).split() == ["pandas", "1"]


@pytest.mark.slow
def test_the_command_collects_rarely_and_not_at_its_end() -> None:
    begun = "import sys, gc; sys.argv = ['penstock', '--version']; from pipelines.__main__ import run"
    # Handlers of atexit run in the reverse order, so this one runs after gc.freeze.
    at_the_end = "import atexit; atexit.register(lambda: print(gc.get_threshold()[0], gc.get_freeze_count() > 10_000))"
    assert printed(begun, at_the_end, "run()").splitlines()[-1] == "50000 True"


@pytest.mark.slow
def test_a_process_that_only_imports_the_commands_is_not_changed() -> None:
    assert printed("import gc, pipelines.cli.main, pipelines.__main__; print(gc.get_threshold()[0])") == "700"


def test_a_process_that_handled_an_interruption_of_exec_ends_with_its_own_exit_code() -> None:
    handled = "from contextlib import suppress\nwith suppress(KeyboardInterrupt): exec('raise KeyboardInterrupt')"
    forgotten = f"{handled}\nfrom resources.machines import own_process; own_process.forget_interruptions()"
    codes = [subprocess.run([sys.executable, "-c", text], check=False).returncode for text in (handled, forgotten)]
    assert codes == [-signal.SIGINT, 0]  # otherwise nobody has to forget it


@pytest.mark.slow
def test_duckdb_prints_nothing_at_the_end() -> None:  # fault F06
    code = (
        "from resources.machines import own_process; own_process.begin()\n"
        "from resources.machines.duckdb_connections import connect_duckdb\n"
        "with connect_duckdb() as database:\n"
        "    database.sql('select 1').fetchall()"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stderr == ""
