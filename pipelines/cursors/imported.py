"""The offsets that another loader stored for a topic, and the reading of its files."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kafka_io.model import BrokerPartition
from resources.errors import OffsetsUnreadable

_OFFSET = re.compile(r"-?[0-9]{1,19}")
_MAX_OFFSET = 2**63 - 1
_MAX_FILE_BYTES = 64 * 1024 * 1024

ImportedOffsets = Mapping[BrokerPartition, int | None]
"""The next offset to read of each partition. None where the other loader says that it has no offset."""
PartitionOffset = tuple[str, BrokerPartition, int | None]
"""An entry of a file: topic, partition, offset."""


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
        raise OffsetsUnreadable(f"{path} cannot be read: {error.strerror}") from error


def read_text(path: Path) -> str:
    """The contents of a text file.

    Raises:
        OffsetsUnreadable: as `read_bytes`; or the file is not UTF-8.
    """
    try:
        return read_bytes(path).decode()
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


def merged(entries: Iterable[PartitionOffset], topic: str, file: str) -> ImportedOffsets:
    """The offsets of a topic in one file; see `merged_files`."""
    return merged_files((*entry, file) for entry in entries if entry[0] == topic)


def merged_files(entries: Iterable[tuple[str, BrokerPartition, int | None, str]]) -> ImportedOffsets:
    """The offset of each partition from entries of one topic, each with its file. All entries must agree.

    Raises:
        OffsetsUnreadable: two entries of a partition have different offsets.
    """
    offsets: dict[BrokerPartition, tuple[int | None, str]] = {}
    for _, id_, offset, file in entries:
        other_offset, other_file = offsets.setdefault(id_, (offset, file))
        if other_offset != offset:
            raise OffsetsUnreadable(
                f"the offsets of partition {id_} differ: {other_offset} in {other_file}, {offset} in {file}"
            )
    return {id_: offset for id_, (offset, _) in offsets.items()}


def parse_offset(value: object, where: str) -> int | None:
    """An offset as other loaders write it. A negative number means that there is none.

    Raises:
        OffsetsUnreadable: the value is not a whole number of 64 bits.
    """
    if isinstance(value, bool) or not _OFFSET.fullmatch(str(value)) or int(str(value)) > _MAX_OFFSET:
        raise OffsetsUnreadable(f"{value!r} is not an offset ({where})")
    number = int(str(value))
    return number if number >= 0 else None
