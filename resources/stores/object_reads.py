"""Reads whole objects below a URI: with one request each, if the store has a StoreClient."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow.fs as pafs

from resources.stores.lake import filesystem
from resources.stores.store_client import store_client


class ObjectReader:
    """Reads objects below a URI.

    Args:
        uri: the folder or table.
        options: the options of the store.
    """

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._uri, self._options = uri, options
        self._client = store_client(uri, options)

    @property
    def reads_at_once(self) -> bool:
        """Whether `read_all` takes about as long as one `read`."""
        return self._client is not None and self._client.reads_at_once

    def read(self, path: str) -> bytes:
        """The content of an object.

        Raises:
            FileNotFoundError: there is no such object.
            OSError: the store does not answer.
        """
        if self._client is not None:
            return self._client.read(path).content
        with self._files.open_input_stream(path) as stream:
            return bytes(stream.read())

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """The contents of objects, in the order of the paths; at the same time, if the store has an ObjectClient.

        Raises:
            FileNotFoundError: one of them is not there.
            OSError: the store does not answer.
        """
        if self._client is not None:
            return [stored.content for stored in self._client.read_all(paths)]
        return [self.read(path) for path in paths]

    @cached_property
    def _files(self) -> pafs.FileSystem:
        return filesystem(self._uri, self._options)
