"""Compile kernels with numba on their first call, and cache the machine code for later processes.

Spark workers import the kernels from a zip archive whose path differs between applications and hosts. numba derives the
cache folder from the path of the source file, so every worker would compile again. Here the folder is named after a
hash of the kernels' source: all processes with the same source share it. If it cannot be written, only time is lost.
"""

import hashlib
import logging
import os
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from kafka_io.garbage import no_collections

with no_collections():
    from numba import njit
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    from numba.misc.appdirs import AppDirs

from kafka_io.jit.isal_crc32 import HAS_CRC32

_KERNEL_FOLDERS = ("hashes/kernels", "records/kernels", "values/kernels")
_USED_BY_KERNELS = ("jit/scalars.py", "jit/utf8.py", "records/layout.py")

_LOGGER = logging.getLogger(__name__)
_COMPILED = {
    "avro_rows": "the decoder for Avro",
    "frames": "the decoder for the ids of schemas",
    "hmac_sha256": "the hashes",
    "json_rows": "the decoder for JSON",
    "protobuf_rows": "the decoder for Protobuf",
}
"""For messages: what is compiled, by module of kernels. All other modules decode records."""

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


# Kernels allocate no arrays, so numba's reference counting (NRT) is not needed: without it they are 2 to 3 times
# faster.
_njit: Any = partial(njit, nogil=True, _nrt=False)
# The functions with which Python calls machine code; compiling them takes as long as compiling a short function.
_WITHOUT_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: _Kernel) -> _Kernel:
    """Compile `function` on its first call; with NUMBA_DISABLE_JIT it stays plain Python."""
    compiled: Any = _njit()(function)
    if compiled is not function:
        # The same as enable_caching(), but with our cache folder.
        compiled._cache = _KernelCache(function)  # type: ignore[no-untyped-call] # noqa: SLF001 - numba is untyped
    return cast("_Kernel", compiled)


def subroutine(function: _Kernel) -> _Kernel:
    """Compile `function` for kernels alone: Python cannot call it, and it has no file in the cache."""
    return cast("_Kernel", _njit(**_WITHOUT_WRAPPERS)(function))


def device_function(function: _Kernel) -> _Kernel:
    """Inline `function` into every kernel that calls it, because passing its arrays takes longer than filling a row.

    Python can call it too, as tests of single functions do. Without the wrapper for Python such a call would crash.
    """
    return cast("_Kernel", _njit(forceinline=True)(function))


def merged(function: _Kernel) -> _Kernel:
    """Copy the statements of `function` into its only caller before types are inferred.

    A long kernel compiles faster than one that calls its parts, because numba optimises a called function again in each
    caller. The machine code is often faster too. A function with several callers would be compiled once for each.
    """
    return cast("_Kernel", _njit(inline="always", **_WITHOUT_WRAPPERS)(function))


class _SourceLocator(_CacheLocator):
    """A folder under NUMBA_CACHE_DIR or the user's cache, named after a hash of the kernels' source."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # Machine code that calls ISA-L fails to load where its library does not export the function.
        self._stamp = hashlib.sha256(_source() + (b"isal" if HAS_CRC32 else b"")).hexdigest()
        self._line = function.__code__.co_firstlineno
        self._py_file = function.__code__.co_filename  # numba names it when it warns

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], _py_file: str) -> Self:
        return cls(py_func)

    def get_cache_path(self) -> str:
        numba = AppDirs(appname="numba", appauthor=False)  # type: ignore[no-untyped-call] # numba is untyped
        return str(Path(os.environ.get("NUMBA_CACHE_DIR") or numba.user_cache_dir) / f"penstock-{self._stamp[:16]}")

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)


@cache
def _source() -> bytes:
    """All source that becomes machine code: that of the kernels, and of what they use."""
    package = Path(__file__).parents[1]
    kernels = [
        f"{folder}/{module.name}.py"
        for folder in _KERNEL_FOLDERS
        for module in pkgutil.iter_modules([str(package / folder)])
    ]
    return b"".join(pkgutil.get_data("kafka_io", file) or b"" for file in (*_USED_BY_KERNELS, *sorted(kernels)))


@cache
def _say_compiling(module: str) -> None:
    """Write into the log of Python what is compiled; once for the kernels of a module (fault F04)."""
    kernels = _COMPILED.get(module, "the decoder for records")
    _LOGGER.info("compiling %s, once for this machine ...", kernels)


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_SourceLocator]  # noqa: RUF012 - the name and kind are numba's


class _KernelCache(FunctionCache):
    _impl_class = _KernelCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel from the cache. For the first kernel of a process, numba imports many of its modules here.

        A kernel that is not in the cache is compiled next, which takes seconds.
        """
        with no_collections():
            overload = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call] # numba is untyped
        if overload is None:
            _say_compiling(self._py_func.__module__.rpartition(".")[2])
        return overload

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with suppress(OSError):
            yield
