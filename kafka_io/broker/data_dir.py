"""The directory a broker keeps its logs in, held by one broker at a time."""

import fcntl
import os
from pathlib import Path
from typing import Self

from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError

_LOCK = ".lock"


class DataDirInUse(KafkaIOError):
    """Another broker, alive, keeps its logs in this directory."""


class DataDir(Closing):
    """A data directory, made when it is missing and locked from `open` to `close`.

    The lock is the kernel's and belongs to the open file: it ends with the process, however that ends.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> Self:
        """Take the directory.

        Raises:
            DataDirInUse: somebody has it.
        """
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise DataDirInUse(f"another broker keeps its logs in {path}") from error
        return cls(path, lock)

    def close(self) -> None:
        """Give the directory free."""
        os.close(self._lock)
