"""All logs of a data directory: which there are, which there may be, and how a new one comes to be (facts, 2 and 3)."""

import logging
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.log.log import Log, LogLimits
from kafka_io.broker.log.retention import Retention
from kafka_io.error_codes import check
from kafka_io.errors import BrokerError, NodeMalformed, Where
from kafka_io.registry.paths import check_topic_name

logger = logging.getLogger(__name__)

_WRONG_PARTITION = 3
_ILLEGAL_TOPIC = -1  # has no code of its own on the wire (facts, 3)
_NAME = re.compile("(?P<topic>.+)-(?P<partition>0|[1-9][0-9]*)")


class Logs:
    """The logs of one broker, found without a lock, made under one.

    Args:
        on_new_topic: told each topic when it gets its first log.
    """

    def __init__(self, config: BrokerConfig, *, clock: ClockMs, on_new_topic: Callable[[str], None]) -> None:
        self.config = config
        self._clock = clock
        self._on_new_topic = on_new_topic
        self._retention = Retention(age_ms=config.retention_ms, size_bytes=config.retention_bytes)
        self._logs: dict[tuple[str, int], Log] = {}
        self._creating = threading.Lock()

    def load(self) -> None:
        """Open and recover every log the directory holds, of whatever broker wrote it.

        Raises:
            Corrupt: a log has a hole.
        """
        for topic, partition in _partitions_in(self.config.data_dir):
            try:
                _check_topic(topic)
            except BrokerError as error:
                logger.warning("a directory is not served: %s", error)
            else:
                self._open(topic, partition)

    def find(self, topic: str, partition: int) -> Log | None:
        """The log of a broker-partition; None when it may exist and does not.

        Raises:
            BrokerError: the topic is illegal (code -1) or has no such partition (code 3).
        """
        _check_topic(topic)
        if not 0 <= partition < self.config.partitions_of(topic):
            check(_WRONG_PARTITION, self._where(topic, partition))
        return self._logs.get((topic, partition))

    def find_or_create(self, topic: str, partition: int) -> Log:
        """The log of a broker-partition, made if need be. Same errors as `find`.

        Raises:
            OSError: the disk refuses, or the name is too long for it.
        """
        log = self.find(topic, partition)
        if log is not None:
            return log
        with self._creating:
            log = self.find(topic, partition)
            return log if log is not None else self._open(topic, partition)

    def any_partition(self, topic: str) -> int:
        """A partition of `topic` picked at random, as for a producer that leaves it to the broker."""
        return random.randrange(self.config.partitions_of(topic))  # noqa: S311 - spreads load, guards nothing

    def flush(self) -> None:
        """Make everything written so far durable and visible."""
        for log in tuple(self._logs.values()):
            log.flush()

    def clean(self) -> None:
        """Delete the segments that retention no longer keeps."""
        for (topic, partition), log in tuple(self._logs.items()):
            if deleted := log.clean(self._retention):
                logger.info("%d segments deleted [%s]", deleted, self._where(topic, partition))

    def close(self) -> None:
        """Flush and close every log; no request may be under way."""
        with ExitStack() as closing:
            for log in self._logs.values():
                closing.callback(log.close)

    def _open(self, topic: str, partition: int) -> Log:
        limits = LogLimits(
            segment_bytes=self.config.segment_bytes_of(topic),
            roll_ms=self.config.roll_ms,
            flush_messages=self.config.flush_messages,
        )
        where = self._where(topic, partition)
        log = Log.open(self.config.data_dir / f"{topic}-{partition}", limits, clock=self._clock, where=where)
        if log.recovered_bytes:
            logger.warning("%d bytes cut off after the last whole message [%s]", log.recovered_bytes, where)
        is_new_topic = all(known != topic for known, _ in self._logs)
        self._logs[topic, partition] = log
        if is_new_topic:
            self._on_new_topic(topic)
        return log

    def _where(self, topic: str, partition: int) -> Where:
        return Where(broker=str(self.config.broker_id), topic=topic, partition=partition)


def _check_topic(topic: str) -> None:
    try:
        check_topic_name(topic)
    except NodeMalformed as error:
        raise BrokerError(error.reason, Where(topic=topic), _ILLEGAL_TOPIC) from error


def _partitions_in(data_dir: Path) -> Iterator[tuple[str, int]]:
    """Topic and partition of each log directory; a topic may hold dashes, so the last one divides."""
    for path in sorted(data_dir.iterdir()):
        name = _NAME.fullmatch(path.name)
        if name and path.is_dir():
            yield name["topic"], int(name["partition"])
