"""The committed offsets of groups, in one small file that is replaced at each commit."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kafka_io.model import TopicPartition
from kafka_io.testing.modern.json_file import JsonFile

_FILE = "offsets.json"


class CommittedOffset(NamedTuple):
    """The next offset that a group reads of a partition, and a text that the group may add: a row of the file."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


StoredOffsets = Mapping[TopicPartition, CommittedOffset]


def by_partition(offsets: Iterable[CommittedOffset]) -> StoredOffsets:
    """The offsets by partition; the last one of each partition counts."""
    return {TopicPartition(committed.topic, committed.partition): committed for committed in offsets}


class GroupOffsetStore:
    """The committed offsets: `groups` has those of each group by partition, and is replaced as a whole.

    Raises:
        Corrupt: the file has the wrong content.
    """

    def __init__(self, data_dir: Path) -> None:
        self._file = JsonFile(data_dir / _FILE, dict[str, list[CommittedOffset]])
        self._changing = threading.Lock()
        self.groups: Mapping[str, StoredOffsets] = {
            group: by_partition(offsets) for group, offsets in self._file.read({}).items()
        }

    def of(self, group: str) -> StoredOffsets:
        """The committed offsets of a group."""
        return self.groups.get(group, {})

    def commit(self, group: str, offsets: Iterable[CommittedOffset]) -> None:
        """Store `offsets`; they are on disk when this returns.

        Raises:
            OSError: the disk refuses; nothing is stored.
        """
        with self._changing:
            self._replace({**self.groups, group: {**self.of(group), **by_partition(offsets)}})

    def forget_topic(self, topic: str) -> None:
        """Remove the offsets of a deleted topic, because a new topic of this name has other records."""
        with self._changing:
            self._replace(
                {
                    group: by_partition(offset for offset in offsets.values() if offset.topic != topic)
                    for group, offsets in self.groups.items()
                }
            )

    def _replace(self, groups: dict[str, StoredOffsets]) -> None:
        # The file comes first: what readers see is on disk.
        self._file.write({group: list(offsets.values()) for group, offsets in groups.items()})
        self.groups = groups
