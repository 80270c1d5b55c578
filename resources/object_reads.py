"""Reads whole objects of a store with one request each.

deltalake asks for the size of an object before it reads it, unless it knows the size. Most stores need no size: if a
range is longer than the object, they answer with the whole object (RFC 9110, section 14.1.2).
"""

from collections.abc import Collection, Mapping
from functools import cached_property

import pyarrow.fs as pafs

from resources.lake import filesystem

_RANGE_BYTES = 4 * 1024 * 1024
_STORES_WITH_RANGES = {"s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"}


class ObjectReader:
    """Reads objects below a URI.

    Args:
        uri: the folder or table.
        options: the options of the store.
        paths: the objects that are read, relative to `uri`. deltalake has to know them before.
    """

    def __init__(self, uri: str, options: Mapping[str, str], paths: Collection[str]) -> None:
        self._uri, self._options, self._paths = uri, options, paths

    def read(self, path: str) -> bytes:
        """The content of an object.

        Raises:
            FileNotFoundError: there is no such object.
            OSError: the store does not answer.
        """
        if self._uri.partition("://")[0] in _STORES_WITH_RANGES:
            try:
                content = _read(self._ranges, path, _RANGE_BYTES)
                if len(content) < _RANGE_BYTES:  # otherwise the object may be longer
                    return content
            except FileNotFoundError:
                raise
            except OSError:  # the store does not answer such a range, for example of an empty object
                pass
        return _read(self._files, path, None)

    @cached_property
    def _ranges(self) -> pafs.FileSystem:
        return filesystem(self._uri, self._options, dict.fromkeys(self._paths, _RANGE_BYTES))

    @cached_property
    def _files(self) -> pafs.FileSystem:
        return filesystem(self._uri, self._options)


def _read(files: pafs.FileSystem, path: str, size: int | None) -> bytes:
    with files.open_input_stream(path) as stream:
        return bytes(stream.read(size))
