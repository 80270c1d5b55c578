"""Forces files of a lake on a local disk to that disk, so that they survive a power failure (fault L10).

deltalake and pyarrow leave this to the operating system, which may write much later. Object stores need nothing: they
confirm an upload only when the object is durable.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4


def local_path(uri: str) -> Path | None:
    """The folder of a table on a local disk; None for a table in an object store."""
    if uri.startswith("file://"):
        return Path(uri.removeprefix("file://"))
    return None if "://" in uri else Path(uri)


def make_folder(uri: str, name: str) -> None:
    """Make a folder below a table on a local disk, unless it is there. Object stores have no folders.

    Raises:
        OSError: the disk failed, or does not allow it.
    """
    root = local_path(uri)
    if root is not None:
        (root / name).mkdir(parents=True, exist_ok=True)


def sync(path: Path) -> None:
    """Force the contents of a file, or the entries of a folder, to disk.

    Raises:
        OSError: the disk failed.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in the place of the one that is there. After a loss of power it is the old or the new one.

    A process that ends in the middle leaves a hidden file with another name.

    Raises:
        OSError: the disk failed or is full; the old file is there.
    """
    written = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        written.write_bytes(content)
        sync(written)
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
    sync(path.parent)


def sync_file(uri: str, path: str) -> None:
    """Force a file of a table on a local disk to that disk. Object stores need nothing.

    Raises:
        OSError: the disk failed.
    """
    root = local_path(uri)
    if root is not None:
        sync_below(root, root / path)


def sync_below(root: Path, path: Path, later: set[Path] | None = None) -> None:
    """Force `path` to disk, and the entries of all folders from its own up to the parent of `root`.

    A new file is lost if the entry of one of these folders is lost.

    Args:
        root: the uppermost folder that may be new.
        path: the file or folder.
        later: collects these folders instead; the caller must force them to disk before it relies on the file. Many
            new files of one folder then force it once.
    """
    sync(path)
    folders = list(_folders(root, path))
    if later is not None:
        later.update(folders)
        return
    for folder in folders:
        sync(folder)


def _folders(root: Path, path: Path) -> Iterator[Path]:
    """The folders above `path`, up to the parent of `root`."""
    for folder in path.parents:
        yield folder
        if folder == root.parent:
            return
