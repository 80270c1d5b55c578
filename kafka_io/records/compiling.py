"""How kernels are compiled: by numba, on their first call, with the machine code kept for the next process.

Spark workers import the kernels from a zip whose path differs between applications and hosts. numba's own choice of a
place would then leave NUMBA_CACHE_DIR unused and compile anew in every worker. Here the place is told by the text of
the kernels alone, so whoever has the same text shares it; where it cannot be written, only time is lost.
"""

import hashlib
import os
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.misc.appdirs import AppDirs

from kafka_io.records.native import HAS_CRC32

# All that becomes machine code: numba freezes the layout's numbers into it.
_SOURCES = (
    "layout.py",
    "kernels/outcomes.py",
    "kernels/scalars.py",
    "kernels/crc32.py",
    "kernels/target.py",
    "kernels/texts.py",
    "kernels/sets.py",
    "kernels/messages.py",
    "kernels/batches.py",
)
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


# Kernels make no arrays, so numba need not count who holds those it is given: so they are 2 to 3 times faster.
_njit: Any = partial(njit, nogil=True, _nrt=False)


def kernel(function: _Kernel) -> _Kernel:
    """`function`, compiled when it is first called; left as it is under NUMBA_DISABLE_JIT."""
    compiled: Any = _njit()(function)
    if compiled is not function:
        # What enable_caching() does, with our place.
        compiled._cache = _KernelCache(function)  # type: ignore[no-untyped-call] # noqa: SLF001 - numba is untyped
    result: _Kernel = compiled
    return result


def part(function: _Kernel) -> _Kernel:
    """`function`, compiled into each kernel that calls it: to hand a Target over takes longer than to fill a row."""
    inlined: _Kernel = _njit(forceinline=True)(function)
    return inlined


class _SourceLocator(_CacheLocator):
    """A place under NUMBA_CACHE_DIR, or the user's cache, named after the text of the kernels."""

    def __init__(self, function: Callable[..., Any]) -> None:
        text = b"".join(map(_source, _SOURCES))
        # What calls isal must not be loaded where it cannot be called.
        self._stamp = hashlib.sha256(text + (b"isal" if HAS_CRC32 else b"")).hexdigest()
        self._line = function.__code__.co_firstlineno
        self._py_file = function.__code__.co_filename  # numba names it when it warns

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], _py_file: str) -> Self:
        return cls(py_func)

    def get_cache_path(self) -> str:
        root = os.environ.get("NUMBA_CACHE_DIR") or _user_cache_dir()
        return str(Path(root) / f"penstock-{self._stamp[:16]}")

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)


def _source(name: str) -> bytes:
    text = pkgutil.get_data(__package__, name)
    assert text is not None
    return text


def _user_cache_dir() -> str:
    return str(AppDirs(appname="numba", appauthor=False).user_cache_dir)  # type: ignore[no-untyped-call] # numba's own


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_SourceLocator]  # noqa: RUF012 - the name and kind are numba's


class _KernelCache(FunctionCache):
    _impl_class = _KernelCacheImpl

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with suppress(OSError):
            yield
