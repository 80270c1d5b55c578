"""The committed offsets of groups, in one small file that is replaced at each commit."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_io.errors import Corrupt
from kafka_io.model import TopicPartition
from kafka_io.testing.modern.json_file import JsonFile

_FILE = "offsets.json"


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, and a text that the group may add."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


StoredOffsets = Mapping[TopicPartition, CommittedOffset]


def offsets_to_rows(offsets: StoredOffsets) -> list[list[Any]]:
    """The offsets as JSON: `[[topic, partition, offset, leader epoch, metadata], ...]`."""
    return [
        [partition.topic, partition.partition, committed.offset, committed.leader_epoch, committed.metadata]
        for partition, committed in offsets.items()
    ]


def offsets_from_rows(rows: Iterable[Any]) -> dict[TopicPartition, CommittedOffset]:
    """The reverse of `offsets_to_rows`.

    Raises:
        TypeError, ValueError: the rows have another form.
    """
    return {
        TopicPartition(str(topic), int(partition)): CommittedOffset(int(offset), int(epoch), str(metadata))
        for topic, partition, offset, epoch, metadata in rows
    }


class GroupOffsetStore:
    """The committed offsets by group, topic and partition."""

    def __init__(self, data_dir: Path) -> None:
        self._file = JsonFile(data_dir / _FILE)
        self._changing = threading.Lock()
        self._groups: dict[str, StoredOffsets] = {}

    def load(self) -> None:
        """Read the file.

        Raises:
            Corrupt: the file has the wrong content.
        """
        try:
            self._groups = {group: offsets_from_rows(rows) for group, rows in self._file.read({}).items()}
        except (TypeError, ValueError) as error:
            raise Corrupt(f"{self._file.path} is not a list of offsets: {error!r}") from error

    def groups(self) -> tuple[str, ...]:
        """The names of the groups that have committed offsets."""
        return tuple(self._groups)

    def of(self, group: str) -> StoredOffsets:
        """The committed offsets of a group."""
        return self._groups.get(group, {})

    def commit(self, group: str, offsets: StoredOffsets) -> None:
        """Store `offsets`; they are on disk when this returns.

        Raises:
            OSError: the disk refuses; nothing is stored.
        """
        with self._changing:
            self._replace({**self._groups, group: {**self.of(group), **offsets}})

    def forget_topic(self, topic: str) -> None:
        """Remove the offsets of a deleted topic, because a new topic of this name has other records."""
        with self._changing:
            self._replace(
                {
                    group: {partition: offset for partition, offset in offsets.items() if partition.topic != topic}
                    for group, offsets in self._groups.items()
                }
            )

    def _replace(self, groups: dict[str, StoredOffsets]) -> None:
        # The file comes first: what readers see is on disk.
        self._file.write({group: offsets_to_rows(offsets) for group, offsets in groups.items()})
        self._groups = groups
