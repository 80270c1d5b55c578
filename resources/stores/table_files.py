"""The files of a table, for workers: deltalake is imported only for a table in an object store, and after an error."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow.fs as pafs


def table_files(uri: str, options: Mapping[str, str]) -> pafs.FileSystem:
    """A file system whose root is the table at `uri`."""
    if "://" not in uri:
        return pafs.SubTreeFileSystem(uri, pafs.LocalFileSystem())
    from resources.stores.lake import filesystem  # noqa: PLC0415 - it imports deltalake, 17 MB

    return filesystem(uri, options)


@contextmanager
def table_errors(uri: str) -> Iterator[None]:
    """Turn errors of the store inside a `with` block into errors of the lake, as `lake_errors` does."""
    try:
        yield
    except Exception:
        from resources.stores.lake import lake_errors  # noqa: PLC0415 - as above

        with lake_errors(uri):
            raise
