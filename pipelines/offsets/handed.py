"""What another loader left of a topic: by partition the next offset to read."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from kafka_io.model import BrokerPartition
from resources.errors import OffsetsUnreadable

_OFFSET = re.compile(r"-?[0-9]{1,19}")
_LARGEST_OFFSET = 2**63 - 1
_LARGEST_FILE_BYTES = 64 * 1024 * 1024

Handed = Mapping[BrokerPartition, int | None]
"""None where the other loader says that it has no offset of the partition."""


class Source(Protocol):
    """Where another loader keeps its offsets."""

    def __call__(self, topic: str) -> Handed:
        """What it has of `topic`; empty where it knows nothing of it.

        Raises:
            OffsetsUnreadable: it is not there, or not what the loader writes.
            KafkaIOError: it is kept by brokers or ZooKeeper, and cannot be read there.
        """
        ...


def contents_of(path: Path) -> bytes:
    """A file's bytes; files of offsets are small.

    Raises:
        OffsetsUnreadable: it cannot be read, or is no such file by its size.
    """
    try:
        size = path.stat().st_size
        if size > _LARGEST_FILE_BYTES:
            raise OffsetsUnreadable(f"{path} has {size} bytes: no file of offsets is as large")
        return path.read_bytes()
    except OSError as error:
        raise OffsetsUnreadable(f"{path} cannot be read: {error.strerror}") from error


def text_of(path: Path) -> str:
    """A file's text.

    Raises:
        OffsetsUnreadable: see `contents_of`; or it is not UTF-8.
    """
    try:
        return contents_of(path).decode()
    except UnicodeDecodeError as error:
        raise OffsetsUnreadable(f"{path} is not UTF-8 text") from error


def files_in(path: Path, prefix: str) -> list[Path]:
    """`path` if it is a file, else the files in it whose names begin so.

    Raises:
        OffsetsUnreadable: there is none.
    """
    if path.is_file():
        return [path]
    found = sorted(one for one in path.glob(f"{prefix}*") if one.is_file())
    if not found:
        raise OffsetsUnreadable(f"there is no file {prefix}* in {path}")
    return found


def agreed(told: Iterable[tuple[BrokerPartition, int | None, str]]) -> Handed:
    """What is told of each partition, and by whom: all that tell of one must tell the same.

    Raises:
        OffsetsUnreadable: two do not.
    """
    found: dict[BrokerPartition, tuple[int | None, str]] = {}
    for id_, offset, who in told:
        before, by = found.setdefault(id_, (offset, who))
        if before != offset:
            raise OffsetsUnreadable(f"partition {id_} is at {before} in {by}, and at {offset} in {who}")
    return {id_: offset for id_, (offset, _) in found.items()}


def offset_from(value: object, where: str) -> int | None:
    """An offset as other loaders write it; a negative one is none.

    Raises:
        OffsetsUnreadable: it is no whole number that an offset can be.
    """
    if isinstance(value, bool) or not _OFFSET.fullmatch(str(value)) or int(str(value)) > _LARGEST_OFFSET:
        raise OffsetsUnreadable(f"{value!r} is no offset ({where})")
    number = int(str(value))
    return number if number >= 0 else None
