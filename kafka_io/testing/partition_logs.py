"""The logs of all partitions of an embedded broker, for all generations."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

from kafka_io.errors import Where
from kafka_io.testing.config import BrokerConfig
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.segmented_log import SegmentedLog

logger = logging.getLogger(__name__)

LogT = TypeVar("LogT", bound=SegmentedLog[Any, Any])
ConfigT = TypeVar("ConfigT", bound=BrokerConfig)


class PartitionLogs(ABC, Generic[LogT, ConfigT]):
    """The logs of one broker. Requests find them without a lock; they are created and deleted under one.

    Args:
        config: the settings of the broker.
        clock: the wall time in ms since 1970.
        on_change: called with the name of each topic that is loaded, created or deleted.
    """

    def __init__(self, config: ConfigT, *, clock: ClockMs, on_change: Callable[[str], None]) -> None:
        self.config = config
        self._clock = clock
        self._on_change = on_change

    @abstractmethod
    def load(self) -> None:
        """Open and recover every log on disk.

        Raises:
            Corrupt: records are missing in the middle of a log, or a file has the wrong content.
        """

    def flush(self) -> None:
        """Make everything written so far durable."""
        for log in self._logs():
            log.flush()

    def clean(self) -> None:
        """Delete the segments that retention no longer keeps."""
        for log in self._logs():
            if deleted := log.clean():
                logger.info("%d segments deleted [%s]", deleted, log.where)

    def close(self) -> None:
        """Flush and close every log. No request may be in progress."""
        with ExitStack() as closing:
            for log in self._logs():
                closing.callback(log.close)

    @abstractmethod
    def _logs(self) -> Iterable[LogT]:
        """All logs. The iteration continues correctly when a log is created or deleted meanwhile."""

    def _open_log(self, log_type: type[LogT], topic: str, partition: int, config: ConfigT) -> LogT:
        """The log in the directory `<topic>-<partition>`, created if it does not exist."""
        where = Where(broker=str(config.broker_id), topic=topic, partition=partition)
        return log_type.open(config.data_dir / f"{topic}-{partition}", config, clock=self._clock, where=where)
