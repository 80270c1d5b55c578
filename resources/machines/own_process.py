"""Makes the process of a command quick and small: few searches for cycles of objects, and no pandas.

Our own code location of Dagster has no pandas either. Nothing happens in processes that run other programs too, such as
a code location of another project, a notebook or a worker of Spark.
"""

import atexit
import gc
import os
import sys

_COLLECT_AFTER = 50_000
_ours: list[bool] = []


def declare() -> None:
    """Declare that this process runs nothing but Penstock."""
    _ours.append(True)


def begin() -> None:
    """Declare that this process only runs a command. It looks for cycles of objects rarely, and not at its end.

    With Python's own limit of 700 new objects, the searches while modules are imported and the one at the end, when the
    system takes back all memory anyway, were a quarter of a short command's CPU time (decision D45).
    """
    declare()
    # pydantic would look for plugins in the files of every installed package. None belongs into this process.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.set_threshold(_COLLECT_AFTER)
    atexit.register(_end_without_search)


def _end_without_search() -> None:
    """Let Python look for no cycles at the end, except in a process with DuckDB.

    DuckDB counts what it made, and prints a line for each type and function that was not freed (fault F06).
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


def forget_interruptions() -> None:
    """Let the process end with its own exit code although Ctrl-C interrupted it.

    Python notes an interruption of `exec` that no code in its text handles: `dataclass`, for example, executes a text.
    At its end `python -m` looks at the note, and kills itself with SIGINT, also if a caller of `exec` handled the
    interruption. The next `exec` removes the note.
    """
    exec("")  # noqa: S102 - see above


def keep_pandas_out() -> None:
    """Let pyarrow look for pandas now and find none, so that its first array does not import pandas.

    pyarrow imports pandas, if it is installed, only to recognize its objects: 52 MB and 0.3 CPU seconds (decision D45).
    Nothing of Penstock gives such objects to pyarrow. A later `to_pandas` makes pyarrow look again.
    """
    if not _ours or "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 - a command that ends at once needs none

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder of modules that has no pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)
