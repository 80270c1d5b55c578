"""All logs of a data directory: finding them, checking names, and creating new ones.

See [kafka-0.7: Log, Errors].
"""

import logging
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from kafka_io.error_codes import ErrorCode07
from kafka_io.errors import BrokerError, NodeMalformed, Where
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.partition_logs import PartitionLogs
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.log.log import PartitionLog07
from kafka_io.zookeeper.paths import check_topic_name

logger = logging.getLogger(__name__)

_ILLEGAL_TOPIC = -1  # the protocol has no code of its own for it [kafka-0.7: Errors]
_NAME = re.compile("(?P<topic>.+)-(?P<partition>0|[1-9][0-9]*)")


class BrokerLogs07(PartitionLogs[PartitionLog07, BrokerConfig07]):
    """The logs of one 0.7 broker. A topic exists from the first produce to one of its partitions on."""

    def __init__(self, config: BrokerConfig07, *, clock: ClockMs, on_change: Callable[[str], None]) -> None:
        super().__init__(config, clock=clock, on_change=on_change)
        self._logs_by_partition: dict[tuple[str, int], PartitionLog07] = {}
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
            where = Where(broker=str(self.config.broker_id), topic=topic, partition=partition)
            ErrorCode07.check(ErrorCode07.WrongPartition, where)
        return self._logs_by_partition.get((topic, partition))

    def find_or_create(self, topic: str, partition: int) -> PartitionLog07:
        """The log of a broker-partition, created if it does not exist. Raises the errors of `find`.

        Raises:
            OSError: the disk refuses, or the name is too long for the file system.
        """
        log = self.find(topic, partition)
        if log is None:
            with self._creating:  # another thread may create it first
                log = self.find(topic, partition) or self._open(topic, partition)
        return log

    def any_partition(self, topic: str) -> int:
        """A random partition of a topic, for a producer that leaves the choice to the broker."""
        return random.randrange(self.config.partitions_of(topic))  # noqa: S311 - it spreads load and protects nothing

    def _logs(self) -> tuple[PartitionLog07, ...]:
        return tuple(self._logs_by_partition.values())

    def _open(self, topic: str, partition: int) -> PartitionLog07:
        segment_bytes = self.config.topic_segment_bytes.get(topic, self.config.segment_bytes)
        config = replace(self.config, segment_bytes=segment_bytes)
        log = self._open_log(PartitionLog07, topic, partition, config)
        is_new_topic = all(known_topic != topic for known_topic, _ in self._logs_by_partition)
        self._logs_by_partition[topic, partition] = log
        if is_new_topic:
            self._on_change(topic)
        return log


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
