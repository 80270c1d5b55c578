"""The directory of a broker's logs: locked by one broker at a time; new file names in it are made durable."""

import fcntl
import os
from pathlib import Path
from typing import Self

from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError

_LOCK = ".lock"


class DataDirInUse(KafkaIOError):
    """Another running broker uses this directory."""


class DataDir(Closing):
    """A data directory. It is created if it does not exist, and locked from `open` to `close`.

    The kernel holds the lock for the open file, so the lock ends with the process, however the process ends.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> Self:
        """Lock the directory.

        Raises:
            DataDirInUse: another broker uses it.
        """
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise DataDirInUse(f"another running broker uses the data directory {path}") from error
        return cls(path, lock)

    def close(self) -> None:
        """Unlock the directory."""
        os.close(self._lock)


def sync_names(*directories: Path) -> None:
    """Make the names of new files in these directories durable: the fsync of a file does not cover its name."""
    for directory in directories:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
