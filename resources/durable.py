"""Forcing files to disk, where there is one: what was written survives a loss of power from then on (L10).

deltalake and pyarrow leave that to the operating system. Object stores answer only when an object is safe.
"""

import os
from pathlib import Path


def local_path(uri: str) -> Path | None:
    """The folder of a table on a local disk; None for one in an object store."""
    if uri.startswith("file://"):
        return Path(uri.removeprefix("file://"))
    return None if "://" in uri else Path(uri)


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's names, to disk.

    Raises:
        OSError: the disk could not.
    """
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_below(root: Path, path: Path) -> None:
    """Force `path` to disk, and the folders that name it up to the one that names `root`."""
    sync(path)
    for folder in path.parents:
        sync(folder)
        if folder == root.parent:
            return
