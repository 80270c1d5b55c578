"""Reads and writes files below a folder of a local disk, with the methods of ObjectClient."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from resources.stores.stored_object import StoredObject


@dataclass(frozen=True, slots=True)
class FolderClient:
    """The files below a folder. Paths are relative to it.

    The mark of a file changes with its inode, size and time of change.
    """

    root: Path
    reads_at_once: ClassVar[bool] = False
    """Whether `read_all` takes about as long as one `read`."""

    def read(self, path: str) -> StoredObject:
        """The file with its content.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: the disk failed, or the file cannot be read.
        """
        with (self.root / path).open("rb") as file:
            return StoredObject(path, _mark(os.fstat(file.fileno())), file.read())

    def read_all(self, paths: Sequence[str]) -> Sequence[StoredObject]:
        """The files in the order of the paths. Raises what `read` raises."""
        return [self.read(path) for path in paths]

    def list(self, folder: str, *, after: str = "") -> Iterator[StoredObject]:
        """The files in the folder and below it, whose paths come after `after`, in the order of their paths.

        There are none if the folder does not exist.

        Raises:
            OSError: the disk failed, or a folder cannot be read.
        """
        for path in sorted(path for path in self._paths(folder) if path > after):
            with suppress(FileNotFoundError):  # another process removed it since
                yield StoredObject(path, _mark((self.root / path).stat()))

    def _paths(self, folder: str) -> Iterator[str]:
        with suppress(FileNotFoundError), os.scandir(self.root / folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_dir():
                    yield from self._paths(path)
                else:
                    yield path

    def create(self, path: str, content: bytes) -> str | None:
        """Write a file that must be absent, whole or not at all; returns its mark. Its folder must exist.

        A process that ends in the middle leaves a hidden file with another name.

        Raises:
            FileExistsError: there is such a file.
            OSError: the disk failed or is full, or the folder does not exist; the file is not there.
        """
        return self._put(path, content, os.link)

    def write(self, path: str, content: bytes) -> str | None:
        """Write a file in the place of the one that may be there, whole or not at all; returns its mark.

        Raises:
            OSError: see `create`.
        """
        return self._put(path, content, os.replace)

    def _put(self, path: str, content: bytes, place: Callable[[Path, Path], None]) -> str | None:
        target = self.root / path
        written = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
        try:
            written.write_bytes(content)
            mark = _mark(written.stat())
            place(written, target)
        finally:
            written.unlink(missing_ok=True)
        return mark


def _mark(status: os.stat_result) -> str:
    return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"
