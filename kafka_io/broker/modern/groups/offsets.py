"""The offsets that groups have committed, kept in one small file that is replaced at each commit."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_io.broker.modern.json_file import JsonFile
from kafka_io.errors import Corrupt

_FILE = "offsets.json"
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """The next offset to read, with a text of the committer's own."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class Offsets:
    """Offsets by group, topic and partition."""

    def __init__(self, data_dir: Path) -> None:
        self._file = JsonFile(data_dir / _FILE)
        self._changing = threading.Lock()
        self._groups: dict[str, dict[Place, Committed]] = {}

    def load(self) -> None:
        """Read the file.

        Raises:
            Corrupt: it is no such.
        """
        try:
            for group, rows in self._file.read({}).items():
                self._groups[group] = {
                    (str(topic), int(partition)): Committed(int(offset), int(epoch), str(metadata))
                    for topic, partition, offset, epoch, metadata in rows
                }
        except (TypeError, ValueError) as error:
            raise Corrupt(f"{self._file.path} is no list of offsets: {error!r}") from error

    def groups(self) -> tuple[str, ...]:
        """The groups that have committed something."""
        return tuple(self._groups)

    def of(self, group: str) -> Mapping[Place, Committed]:
        """What a group has committed."""
        return self._groups.get(group, {})

    def commit(self, group: str, offsets: Mapping[Place, Committed]) -> None:
        """Keep `offsets`; on return they are on the disk.

        Raises:
            OSError: the disk refuses; then they are not kept.
        """
        with self._changing:
            self._replace({**self._groups, group: {**self.of(group), **offsets}})

    def forget_topic(self, topic: str) -> None:
        """Drop what was committed for a topic that is deleted: one that comes after it begins anew."""
        with self._changing:
            self._replace(
                {
                    group: {place: one for place, one in kept.items() if place[0] != topic}
                    for group, kept in self._groups.items()
                }
            )

    def _replace(self, groups: dict[str, dict[Place, Committed]]) -> None:
        self._file.write(
            {
                group: [[*place, one.offset, one.leader_epoch, one.metadata] for place, one in kept.items()]
                for group, kept in groups.items()
            }
        )
        self._groups = groups
