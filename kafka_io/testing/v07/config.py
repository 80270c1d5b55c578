"""The settings of the embedded 0.7 broker. Comments name the genuine broker's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_io.testing.config import BrokerConfig

_WEEK_MS = 7 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig07(BrokerConfig):
    """The settings of one broker. The defaults suit a demo, which writes much at once and reads it soon after.

    A genuine broker flushes after 10,000 messages or 1 s. This one has the same number of messages, but 200 ms: readers
    see only flushed messages [kafka-0.7: Flushing], and a demo should not wait a second for them.
    """

    topic_partitions: Mapping[str, int] = field(default_factory=dict)  # topic.partition.count.map
    topic_segment_bytes: Mapping[str, int] = field(default_factory=dict)  # topic.log.file.size
    flush_messages: int = 10_000  # log.flush.interval
    flush_interval_ms: int = 200
    retention_ms: int | None = _WEEK_MS
    max_message_bytes: int = 1_000_000  # max.message.size: payload without its header

    def partitions_of(self, topic: str) -> int:
        """The number of partitions of a topic on this broker, whether they exist on disk or not."""
        return self.topic_partitions.get(topic, self.partitions)
