"""All logs of a data directory: finding them, checking names, and creating new ones.

See [kafka-0.7: Log, Errors].
"""

import logging
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from kafka_io.error_codes import ErrorCode07
from kafka_io.errors import BrokerError, NodeMalformed, Where
from kafka_io.registry.paths import check_topic_name
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.segment_file import LogRetention
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.log.log import LogLimits07, PartitionLog07

logger = logging.getLogger(__name__)

_ILLEGAL_TOPIC = -1  # the protocol has no code of its own for it [kafka-0.7: Errors]
_NAME = re.compile("(?P<topic>.+)-(?P<partition>0|[1-9][0-9]*)")


class BrokerLogs07:
    """The logs of one broker. They are found without a lock and created under one.

    Args:
        config: the settings of the broker.
        clock: the wall time in ms since 1970.
        on_new_topic: called with each topic when its first log is created or loaded.
    """

    def __init__(self, config: BrokerConfig07, *, clock: ClockMs, on_new_topic: Callable[[str], None]) -> None:
        self.config = config
        self._clock = clock
        self._on_new_topic = on_new_topic
        self._retention = LogRetention(age_ms=config.retention_ms, size_bytes=config.retention_bytes)
        self._logs: dict[tuple[str, int], PartitionLog07] = {}
        self._creating = threading.Lock()

    def load(self) -> None:
        """Open and recover every log in the directory, whichever broker wrote it.

        Raises:
            Corrupt: a log has a hole.
        """
        for topic, partition in _partitions_in(self.config.data_dir):
            try:
                _check_topic(topic)
            except BrokerError as error:
                logger.warning("a directory is ignored: %s", error)
            else:
                self._open(topic, partition)

    def find(self, topic: str, partition: int) -> PartitionLog07 | None:
        """The log of a broker-partition; None if the partition is valid but has no log yet.

        Raises:
            BrokerError: the topic is illegal (code -1) or has no such partition (code 3).
        """
        _check_topic(topic)
        if not 0 <= partition < self.config.partitions_of(topic):
            ErrorCode07.check(ErrorCode07.WrongPartition, self._where(topic, partition))
        return self._logs.get((topic, partition))

    def find_or_create(self, topic: str, partition: int) -> PartitionLog07:
        """The log of a broker-partition, created if it does not exist. Raises the errors of `find`.

        Raises:
            OSError: the disk refuses, or the name is too long for the file system.
        """
        log = self.find(topic, partition)
        if log is not None:
            return log
        with self._creating:
            log = self.find(topic, partition)
            return log if log is not None else self._open(topic, partition)

    def any_partition(self, topic: str) -> int:
        """A random partition of a topic, for a producer that leaves the choice to the broker."""
        return random.randrange(self.config.partitions_of(topic))  # noqa: S311 - it spreads load and protects nothing

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
        """Flush and close every log. No request may be in progress."""
        with ExitStack() as closing:
            for log in self._logs.values():
                closing.callback(log.close)

    def _open(self, topic: str, partition: int) -> PartitionLog07:
        limits = LogLimits07(
            segment_bytes=self.config.segment_bytes_of(topic),
            roll_ms=self.config.roll_ms,
            flush_messages=self.config.flush_messages,
        )
        where = self._where(topic, partition)
        log = PartitionLog07.open(self.config.data_dir / f"{topic}-{partition}", limits, clock=self._clock, where=where)
        if log.recovered_bytes:
            logger.warning("recovery removed %d bytes after the last whole message [%s]", log.recovered_bytes, where)
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
    """Topic and partition of each log directory. A topic name may contain dashes, so the last dash separates them."""
    for path in sorted(data_dir.iterdir()):
        name = _NAME.fullmatch(path.name)
        if name and path.is_dir():
            yield name["topic"], int(name["partition"])
