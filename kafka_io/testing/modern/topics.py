"""The topics of a broker: their ids and numbers of partitions in one small file, and a log for each partition.

The file decides which topics exist. A directory whose topic is not in the file was left by a deletion that a crash
interrupted. It is not served; when a topic of the same name is created, the directory is renamed.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError, Corrupt, Where
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.json_file import JsonFile
from kafka_io.testing.modern.log.log import LogLimits, PartitionLog
from kafka_io.testing.segment_file import LogRetention
from kafka_io.wire.types import uuid_text

logger = logging.getLogger(__name__)

_FILE = "topics.json"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


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
            raise unknown_topic_or_partition(self.name, partition)
        return self.logs[partition]


class BrokerTopics:
    """All topics. They are found without a lock, and created and deleted under one.

    Args:
        config: the settings of the broker.
        clock: the wall time in ms since 1970.
        on_change: called with the name of each topic that is loaded, created or deleted.
    """

    def __init__(self, config: ModernBrokerConfig, *, clock: ClockMs, on_change: Callable[[str], None]) -> None:
        self._config = config
        self._clock = clock
        self._on_change = on_change
        self._limits = LogLimits(segment_bytes=config.segment_bytes, roll_ms=config.roll_ms)
        self._retention = LogRetention(age_ms=config.retention_ms, size_bytes=config.retention_bytes)
        self._file = JsonFile(config.data_dir / _FILE)
        self._changing = threading.Lock()
        self._topics: dict[str, BrokerTopic] = {}
        self._by_id: dict[UUID, BrokerTopic] = {}
        self.cluster_id = ""

    def load(self) -> None:
        """Open and recover every log.

        Raises:
            Corrupt: the file has the wrong content, or records are missing in the middle of a log.
        """
        content = self._file.read({"cluster_id": uuid_text(uuid4()), "topics": {}})
        try:
            self.cluster_id = str(content["cluster_id"])
            for name, row in content["topics"].items():
                topic_id, partitions = UUID(row["id"]), int(row["partitions"])
                self._add(BrokerTopic(name=name, id=topic_id, logs=self._open_logs(name, partitions)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Corrupt(f"{self._file.path} is not a list of topics: {error!r}") from error
        self._save(self._topics)
        for name in self._topics:
            self._on_change(name)

    def all(self) -> tuple[BrokerTopic, ...]:
        """Every topic, ordered by name."""
        return tuple(sorted(self._topics.values(), key=lambda topic: topic.name))

    def get(self, name: str) -> BrokerTopic | None:
        """The topic of this name; None if there is none."""
        return self._topics.get(name)

    def find(self, name: str) -> BrokerTopic:
        """The topic of this name.

        Raises:
            BrokerError: there is none (code 3), or the name is illegal (code 17).
        """
        topic = self._topics.get(name)
        if topic is None:
            check_topic_name(name)
            raise unknown_topic_or_partition(name)
        return topic

    def find_id(self, topic_id: UUID) -> BrokerTopic:
        """The topic of this id.

        Raises:
            BrokerError: there is none (code 100).
        """
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise BrokerError(f"no topic has the id {topic_id}", code=ErrorCode.UNKNOWN_TOPIC_ID)
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
                _move_stray_directory(self._directory(name, partition))
            topic = BrokerTopic(name=name, id=uuid4(), logs=self._open_logs(name, partitions))
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
            del self._topics[name], self._by_id[topic.id]
            for log in topic.logs:
                log.remove()
        self._on_change(name)

    def flush(self) -> None:
        """Force everything written so far to the disk."""
        for log in self._logs():
            log.flush()

    def clean(self) -> None:
        """Delete the segments that retention no longer keeps."""
        for log in self._logs():
            if deleted := log.clean(self._retention):
                logger.info("%d segments deleted [%s]", deleted, log.where)

    def close(self) -> None:
        """Flush and close every log. No request may be in progress."""
        with ExitStack() as closing:
            for log in self._logs():
                closing.callback(log.close)

    def _add(self, topic: BrokerTopic) -> None:
        self._topics[topic.name] = self._by_id[topic.id] = topic

    def _logs(self) -> Iterator[PartitionLog]:
        for topic in tuple(self._topics.values()):
            yield from topic.logs

    def _check_new(self, name: str, partitions: int) -> None:
        check_topic_name(name)
        if name in self._topics:
            raise BrokerError(
                "there is a topic of this name already", Where(topic=name), ErrorCode.TOPIC_ALREADY_EXISTS
            )
        free = self._config.max_partitions - sum(len(topic.logs) for topic in self._topics.values())
        if not 0 < partitions <= free:
            reason = f"{partitions} partitions requested; max_partitions of the broker allows 1 to {free} more"
            raise BrokerError(reason, Where(topic=name), ErrorCode.INVALID_PARTITIONS)

    def _save(self, topics: dict[str, BrokerTopic]) -> None:
        rows = {name: {"id": str(topic.id), "partitions": len(topic.logs)} for name, topic in topics.items()}
        self._file.write({"cluster_id": self.cluster_id, "topics": rows})

    def _directory(self, topic: str, partition: int) -> Path:
        return self._config.data_dir / f"{topic}-{partition}"

    def _open_logs(self, topic: str, partitions: int) -> tuple[PartitionLog, ...]:
        return tuple(self._open_log(topic, partition) for partition in range(partitions))

    def _open_log(self, topic: str, partition: int) -> PartitionLog:
        where = Where(broker=str(self._config.broker_id), topic=topic, partition=partition)
        return PartitionLog.open(self._directory(topic, partition), self._limits, clock=self._clock, where=where)


def check_topic_name(name: str) -> None:
    """Check that a topic may have this name.

    Raises:
        BrokerError: it may not (code 17).
    """
    if not _TOPIC_NAME.fullmatch(name) or name in {".", ".."}:
        raise BrokerError("a topic may not have this name", Where(topic=name), ErrorCode.INVALID_TOPIC_EXCEPTION)


def unknown_topic_or_partition(topic: str, partition: int | None = None) -> BrokerError:
    """The error for a topic or partition that does not exist."""
    where = Where(topic=topic, partition=partition)
    return BrokerError("no such topic or partition", where, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _move_stray_directory(directory: Path) -> None:
    """Rename a directory that an interrupted deletion left. It is kept, because nobody asked to delete it now."""
    if directory.exists():
        new_path = directory.with_name(f"{directory.name}.{uuid4().hex}-stray")
        logger.warning("%s belongs to no topic, it is renamed to %s", directory, new_path.name)
        directory.rename(new_path)
