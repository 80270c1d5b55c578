"""A pause of Python's searches for cycles ends as it began, also if it fails or overlaps with another one."""

import gc
import subprocess
import sys

import pytest
from numba.core.caching import FunctionCache

from kafka_io.garbage import no_collections
from kafka_io.jit import compiling

SEARCHES = """
import gc
searches = []
gc.callbacks.append(lambda phase, _: searches.append(phase))
import kafka_io.jit.compiling
print(searches.count("start"))
"""


def test_nothing_is_searched_in_the_block_and_everything_afterwards() -> None:
    assert gc.isenabled()
    with no_collections():
        assert not gc.isenabled()
        with no_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="broken"), no_collections():
        raise ValueError("broken")
    assert gc.isenabled()


def test_a_process_without_searches_stays_without_them() -> None:
    gc.disable()
    try:
        with no_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.slow
def test_numba_is_imported_without_searches() -> None:
    done = subprocess.run([sys.executable, "-c", SEARCHES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20  # more than a hundred with them


def test_a_kernel_is_loaded_without_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    enabled = list[bool]()
    monkeypatch.setattr(FunctionCache, "load_overload", lambda *_: enabled.append(gc.isenabled()))
    cache = compiling._KernelCache(test_a_process_without_searches_stays_without_them)  # type: ignore[no-untyped-call] # numba is untyped
    cache.load_overload(None, None)
    assert enabled == [False]
    assert gc.isenabled()
