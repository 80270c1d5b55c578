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
from typing import Any, Self, TypeVar

from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.misc.appdirs import AppDirs

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def kernel(function: _Kernel) -> _Kernel:
    """`function`, compiled when it is first called; left as it is under NUMBA_DISABLE_JIT."""
    compiled: Any = njit(nogil=True)(function)
    if compiled is not function:
        compiled._cache = _KernelCache(function)  # noqa: SLF001 - what enable_caching() does, with our place
    result: _Kernel = compiled
    return result


class _SourceLocator(_CacheLocator):  # type: ignore[misc] # numba is untyped
    """A place under NUMBA_CACHE_DIR, or the user's cache, named after the text of the function's module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        package, _, module = function.__module__.rpartition(".")
        source = pkgutil.get_data(package, f"{module}.py")
        assert source is not None
        self._stamp = hashlib.sha256(source).hexdigest()
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], _py_file: str) -> Self:
        return cls(py_func)

    def get_cache_path(self) -> str:
        root = config.CACHE_DIR or AppDirs(appname="numba", appauthor=False).user_cache_dir
        return os.path.join(root, f"penstock-{self._stamp[:16]}")

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc] # numba is untyped
    _locator_classes = (_SourceLocator,)


class _KernelCache(FunctionCache):  # type: ignore[misc] # numba is untyped
    _impl_class = _KernelCacheImpl

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with suppress(OSError):
            yield
