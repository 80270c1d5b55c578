"""Imports modules without searches for cycles of objects.

Python searches again and again while objects are made, and looks at all objects of the process at times. What an
import makes stays, so nothing is found. In a process as large as one of Dagster, the searches take as long as a third
of the import itself.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Search for no cycles in the `with` block, in all threads. Afterwards everything is as before.

    Blocks of several threads may overlap: the one that began first ends the pause.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
