"""The offsets that another loader stored for a topic, and the reading of its files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafka_io.errors import WireError, system_reason
from kafka_io.model import BrokerPartition
from resources.errors import OffsetsUnreadable

_OFFSET = re.compile(r"-?[0-9]{1,19}")
_MAX_OFFSET = 2**63 - 1
_MAX_FILE_BYTES = 64 * 1024 * 1024

ImportedOffsets = Mapping[BrokerPartition, int | None]
"""The next offset to read of each partition. None where the other loader says that it has no offset."""
PartitionOffset = tuple[str, BrokerPartition, int | None, str]
"""An entry of a file: topic, partition, offset, and the name of the file for errors."""


def read_bytes(path: Path) -> bytes:
    """The contents of a file. Files with offsets are small; a large one is something else.

    Raises:
        OffsetsUnreadable: the file cannot be read, or is too large.
    """
    try:
        size = path.stat().st_size
        if size > _MAX_FILE_BYTES:
            raise OffsetsUnreadable(f"{path} has {size} bytes: too many for a file of offsets")
        return path.read_bytes()
    except OSError as error:
        raise OffsetsUnreadable(f"{path} cannot be read: {system_reason(error)}") from error


def read_text(path: Path) -> str:
    """The contents of a text file.

    Raises:
        OffsetsUnreadable: as `read_bytes`; or the file is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OffsetsUnreadable(f"{path} is not UTF-8 text") from error


def files_in(path: Path, prefix: str) -> list[Path]:
    """The files in the folder `path` whose names begin with `prefix`; `path` itself if it is a file.

    Raises:
        OffsetsUnreadable: there is no such file.
    """
    if path.is_file():
        return [path]
    files = sorted(file for file in path.glob(f"{prefix}*") if file.is_file())
    if not files:
        raise OffsetsUnreadable(f"there is no file {prefix}* in {path}")
    return files


@contextmanager
def damaged_file(name: str) -> Iterator[None]:
    """While the bytes of a file are parsed: an error of its fields becomes one of the file.

    Raises:
        OffsetsUnreadable: the data is incomplete or not valid.
    """
    try:
        yield
    except WireError as error:
        raise OffsetsUnreadable(f"{name} is damaged: {error.reason}") from error


def merged(entries: Iterable[PartitionOffset], topic: str) -> ImportedOffsets:
    """The offset of each partition of `topic`. All entries of a partition must agree.

    Raises:
        OffsetsUnreadable: two entries of a partition have different offsets.
    """
    offsets: dict[BrokerPartition, tuple[int | None, str]] = {}
    for entry_topic, id_, offset, file in entries:
        if entry_topic == topic:
            other_offset, other_file = offsets.setdefault(id_, (offset, file))
            if other_offset != offset:
                raise OffsetsUnreadable(
                    f"the offsets of partition {id_} differ: {other_offset} in {other_file}, {offset} in {file}"
                )
    return {id_: offset for id_, (offset, _) in offsets.items()}


def parse_offset(value: int | str, where: str) -> int | None:
    """An offset as other loaders write it. A negative number means that there is none.

    Raises:
        OffsetsUnreadable: the value is not a whole number of 64 bits.
    """
    if not _OFFSET.fullmatch(str(value)) or int(value) > _MAX_OFFSET:
        raise OffsetsUnreadable(f"{value!r} is not an offset ({where})")
    return int(value) if int(value) >= 0 else None
