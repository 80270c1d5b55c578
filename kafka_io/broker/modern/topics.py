"""The topics of a broker: their ids and partitions, kept in one small file, and a log for each partition.

The file is the authority. A directory of a topic that is not in it was left by a deletion that a crash cut short: it is
not served, and moved aside when a topic of its name is made.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.json_file import JsonFile
from kafka_io.broker.modern.log.log import Log, LogLimits
from kafka_io.broker.modern.log.retention import Retention
from kafka_io.errors import BrokerError, Corrupt, Where
from kafka_io.wire.types import uuid_text

logger = logging.getLogger(__name__)

_FILE = "topics.json"
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic and the logs of its partitions, in order."""

    name: str
    id: UUID
    logs: tuple[Log, ...]

    def log(self, partition: int) -> Log:
        """One partition's.

        Raises:
            BrokerError: there is no such (code 3).
        """
        if not 0 <= partition < len(self.logs):
            raise unknown(self.name, partition)
        return self.logs[partition]


class Topics:
    """All topics, found without a lock, made and deleted under one.

    Args:
        on_change: told the name of each topic that was found, made or deleted.
    """

    def __init__(self, config: ModernBrokerConfig, *, clock: ClockMs, on_change: Callable[[str], None]) -> None:
        self._config = config
        self._clock = clock
        self._on_change = on_change
        self._limits = LogLimits(segment_bytes=config.segment_bytes, roll_ms=config.roll_ms)
        self._retention = Retention(age_ms=config.retention_ms, size_bytes=config.retention_bytes)
        self._file = JsonFile(config.data_dir / _FILE)
        self._changing = threading.Lock()
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self.cluster_id = ""

    def load(self) -> None:
        """Open and recover every log.

        Raises:
            Corrupt: the file of topics is no such, or a log has a hole.
        """
        kept = self._file.read({"cluster_id": uuid_text(uuid4()), "topics": {}})
        try:
            self.cluster_id = str(kept["cluster_id"])
            for name, about in kept["topics"].items():
                topic_id, partitions = UUID(about["id"]), int(about["partitions"])
                logs = tuple(self._open(name, number) for number in range(partitions))
                self._add(Topic(name=name, id=topic_id, logs=logs))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Corrupt(f"{self._file.path} is no list of topics: {error!r}") from error
        self._save(self._topics)
        for name in self._topics:
            self._on_change(name)

    def all(self) -> tuple[Topic, ...]:
        """Every topic, by name."""
        return tuple(sorted(self._topics.values(), key=lambda topic: topic.name))

    def get(self, name: str) -> Topic | None:
        """The topic of this name, None when there is no such."""
        return self._topics.get(name)

    def find(self, name: str) -> Topic:
        """The topic of this name.

        Raises:
            BrokerError: there is no such (code 3), or may be none (17).
        """
        topic = self._topics.get(name)
        if topic is None:
            check_name(name)
            raise unknown(name)
        return topic

    def find_id(self, topic_id: UUID) -> Topic:
        """The topic of this id.

        Raises:
            BrokerError: there is no such (code 100).
        """
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise BrokerError(f"no topic has the id {topic_id}", code=Code.UNKNOWN_TOPIC_ID)
        return topic

    def create(self, name: str, partitions: int, *, only_check: bool = False) -> Topic | None:
        """Make a topic, or only see whether it could be.

        Raises:
            BrokerError: there is one (code 36), the name is not legal (17), or there would be too many partitions (37).
            OSError: the disk refuses.
        """
        with self._changing:
            self._check_new(name, partitions)
            if only_check:
                return None
            for number in range(partitions):
                _set_aside(self._directory(name, number))
            logs = tuple(self._open(name, number) for number in range(partitions))
            topic = Topic(name=name, id=uuid4(), logs=logs)
            self._save({**self._topics, name: topic})
            self._add(topic)
        self._on_change(name)
        return topic

    def delete(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            BrokerError: there is no such (code 3).
            OSError: the disk refuses.
        """
        with self._changing:
            topic = self.find(name)
            self._save({other: one for other, one in self._topics.items() if other != name})
            del self._topics[name], self._by_id[topic.id]
            for log in topic.logs:
                log.remove()
        self._on_change(name)

    def flush(self) -> None:
        """Bring everything written so far to the disk."""
        for _, log in self._logs():
            log.flush()

    def clean(self) -> None:
        """Delete the segments that retention no longer keeps."""
        for where, log in self._logs():
            if deleted := log.clean(self._retention):
                logger.info("%d segments deleted [%s]", deleted, where)

    def close(self) -> None:
        """Flush and close every log; no request may be under way."""
        with ExitStack() as closing:
            for _, log in self._logs():
                closing.callback(log.close)

    def _add(self, topic: Topic) -> None:
        self._topics[topic.name] = self._by_id[topic.id] = topic

    def _logs(self) -> Iterator[tuple[Where, Log]]:
        for topic in tuple(self._topics.values()):
            for number, log in enumerate(topic.logs):
                yield Where(topic=topic.name, partition=number), log

    def _check_new(self, name: str, partitions: int) -> None:
        check_name(name)
        if name in self._topics:
            raise BrokerError("there is a topic of this name", Where(topic=name), Code.TOPIC_ALREADY_EXISTS)
        left = self._config.max_partitions - sum(len(topic.logs) for topic in self._topics.values())
        if not 0 < partitions <= left:
            reason = f"{partitions} partitions, max_partitions leaves room for {left}"
            raise BrokerError(reason, Where(topic=name), Code.INVALID_PARTITIONS)

    def _save(self, topics: dict[str, Topic]) -> None:
        listed = {name: {"id": str(topic.id), "partitions": len(topic.logs)} for name, topic in topics.items()}
        self._file.write({"cluster_id": self.cluster_id, "topics": listed})

    def _directory(self, topic: str, partition: int) -> Path:
        return self._config.data_dir / f"{topic}-{partition}"

    def _open(self, topic: str, partition: int) -> Log:
        where = Where(broker=str(self._config.broker_id), topic=topic, partition=partition)
        return Log.open(self._directory(topic, partition), self._limits, clock=self._clock, where=where)


def check_name(name: str) -> None:
    """`name` is one that a topic may have.

    Raises:
        BrokerError: it is not (code 17).
    """
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise BrokerError("no topic may have this name", Where(topic=name), Code.INVALID_TOPIC_EXCEPTION)


def unknown(topic: str, partition: int | None = None) -> BrokerError:
    """The error for a topic or partition that is not there."""
    place = Where(topic=topic, partition=partition)
    return BrokerError("no such topic or partition", place, Code.UNKNOWN_TOPIC_OR_PARTITION)


def _set_aside(directory: Path) -> None:
    if directory.exists():
        aside = directory.with_name(f"{directory.name}.{uuid4().hex}-stray")
        logger.warning("%s belongs to no topic, it is %s now", directory, aside.name)
        directory.rename(aside)
