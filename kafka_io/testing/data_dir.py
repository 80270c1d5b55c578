"""The directory of a broker's logs: locked by one broker at a time; new file names in it are made durable."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_io.errors import KafkaIOError

_LOCK = ".lock"


class DataDirInUse(KafkaIOError):
    """Another running broker uses this directory."""


@contextmanager
def locked_data_dir(path: Path) -> Iterator[None]:
    """Lock a data directory, which is created if it does not exist, for the length of a `with` block.

    The kernel holds the lock for the open file, so the lock ends with the process, however the process ends.

    Raises:
        DataDirInUse: another broker uses it.
    """
    path.mkdir(parents=True, exist_ok=True)
    with (path / _LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataDirInUse(f"another running broker uses the data directory {path}") from error
        yield


def sync_names(*directories: Path) -> None:
    """Make the names of new files in these directories durable: the fsync of a file does not cover its name."""
    for directory in directories:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
