"""The topics of a broker: their ids and numbers of partitions in one small file, and a log for each partition.

The file decides which topics exist. A directory whose topic is not in the file was left by a deletion that a crash
interrupted. It is not served; when a topic of the same name is created, the directory is renamed.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError, Where
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.json_file import JsonFile
from kafka_io.testing.modern.log.log import PartitionLog
from kafka_io.testing.partition_logs import PartitionLogs
from kafka_io.wire.types import NULL_UUID, uuid_text

logger = logging.getLogger(__name__)

_FILE = "topics.json"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class _StoredTopic:
    id: UUID
    partitions: int


@dataclass(frozen=True, slots=True)
class _TopicsFile:
    """The content of the file: the id of the cluster, and the topics by name."""

    cluster_id: str
    topics: dict[str, _StoredTopic]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTopic:
    """A topic, and the logs of its partitions in order."""

    name: str
    id: UUID
    logs: tuple[PartitionLog, ...]

    def log(self, partition: int) -> PartitionLog:
        """The log of one partition.

        Raises:
            BrokerError: the topic does not have this partition (code 3).
        """
        if not 0 <= partition < len(self.logs):
            raise _unknown_topic_or_partition(Where(topic=self.name, partition=partition))
        return self.logs[partition]


class BrokerTopics(PartitionLogs[PartitionLog, ModernBrokerConfig]):
    """All topics of one broker from 0.8 on."""

    def __init__(self, config: ModernBrokerConfig, *, clock: ClockMs, on_change: Callable[[str], None]) -> None:
        super().__init__(config, clock=clock, on_change=on_change)
        self._file = JsonFile(config.data_dir / _FILE, _TopicsFile)
        self._changing = threading.Lock()
        self._topics: dict[str, BrokerTopic] = {}
        self._topics_by_id: dict[UUID, BrokerTopic] = {}
        self.cluster_id = ""

    def load(self) -> None:
        """Open and recover every log.

        Raises:
            Corrupt: the file has the wrong content, or records are missing in the middle of a log.
        """
        content = self._file.read(_TopicsFile(uuid_text(uuid4()), {}))
        self.cluster_id = content.cluster_id
        for name, stored in content.topics.items():
            self._add(self._open(name, stored.id, stored.partitions))
        self._save(self._topics)  # the first start creates the file, which keeps the id of the cluster
        for name in self._topics:
            self._on_change(name)

    def all(self) -> tuple[BrokerTopic, ...]:
        """Every topic, ordered by name."""
        return tuple(sorted(self._topics.values(), key=lambda topic: topic.name))

    def get(self, name: str) -> BrokerTopic | None:
        """The topic of this name; None if there is none."""
        return self._topics.get(name)

    def find(self, name: str | None, topic_id: UUID = NULL_UUID) -> BrokerTopic:
        """The topic of this name, or of this id if the name is None.

        Raises:
            BrokerError: no topic has the name (code 3), the name is illegal (code 17), or no topic has the id (100).
        """
        if name is None:
            topic = self._topics_by_id.get(topic_id)
            if topic is None:
                raise BrokerError(f"no topic has the id {topic_id}", code=ErrorCode.UNKNOWN_TOPIC_ID)
            return topic
        topic = self._topics.get(name)
        if topic is None:
            _check_topic_name(name)
            raise _unknown_topic_or_partition(Where(topic=name))
        return topic

    def create(self, name: str, partitions: int, *, only_check: bool = False) -> BrokerTopic | None:
        """Create a topic. With `only_check` find out whether it can be created, and return None.

        Raises:
            BrokerError: it exists (code 36), its name is illegal (17), or there would be too many partitions (37).
            OSError: the disk refuses.
        """
        with self._changing:
            self._check_new(name, partitions)
            if only_check:
                return None
            for partition in range(partitions):
                _move_stray_directory(self.config.data_dir / f"{name}-{partition}")
            # The file changes last. A crash before that leaves directories without a topic, which the next creation of
            # the topic renames.
            topic = self._open(name, uuid4(), partitions)
            self._save({**self._topics, name: topic})
            self._add(topic)
        self._on_change(name)
        return topic

    def delete(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            BrokerError: there is no such topic (code 3).
            OSError: the disk refuses.
        """
        with self._changing:
            topic = self.find(name)
            # The file changes first. After a crash the directories that are left belong to no topic.
            self._save({known_name: known for known_name, known in self._topics.items() if known_name != name})
            del self._topics[name], self._topics_by_id[topic.id]
            for log in topic.logs:
                log.remove()
        self._on_change(name)

    def _add(self, topic: BrokerTopic) -> None:
        self._topics[topic.name] = self._topics_by_id[topic.id] = topic

    def _logs(self) -> Iterator[PartitionLog]:
        for topic in tuple(self._topics.values()):
            yield from topic.logs

    def _check_new(self, name: str, partitions: int) -> None:
        _check_topic_name(name)
        if name in self._topics:
            reason = "there is a topic of this name already"
            raise BrokerError(reason, Where(topic=name), ErrorCode.TOPIC_ALREADY_EXISTS)
        free = self.config.max_partitions - sum(1 for _ in self._logs())
        if not 0 < partitions <= free:
            reason = f"{partitions} partitions requested; max_partitions of the broker allows 1 to {free} more"
            raise BrokerError(reason, Where(topic=name), ErrorCode.INVALID_PARTITIONS)

    def _save(self, topics: dict[str, BrokerTopic]) -> None:
        stored = {name: _StoredTopic(topic.id, len(topic.logs)) for name, topic in topics.items()}
        self._file.write(_TopicsFile(self.cluster_id, stored))

    def _open(self, name: str, topic_id: UUID, partitions: int) -> BrokerTopic:
        logs = (self._open_log(PartitionLog, name, partition, self.config) for partition in range(partitions))
        return BrokerTopic(name=name, id=topic_id, logs=tuple(logs))


def _check_topic_name(name: str) -> None:
    """Check that a topic may have this name.

    Raises:
        BrokerError: it may not (code 17).
    """
    if not _TOPIC_NAME.fullmatch(name) or name in {".", ".."}:
        raise BrokerError("a topic may not have this name", Where(topic=name), ErrorCode.INVALID_TOPIC_EXCEPTION)


def _unknown_topic_or_partition(where: Where) -> BrokerError:
    return BrokerError("no such topic or partition", where, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _move_stray_directory(directory: Path) -> None:
    """Rename a directory that an interrupted deletion left. It is kept, because nobody asked to delete it now."""
    if directory.exists():
        new_path = directory.with_name(f"{directory.name}.{uuid4().hex}-stray")
        logger.warning("%s belongs to no topic, it is renamed to %s", directory, new_path.name)
        directory.rename(new_path)
