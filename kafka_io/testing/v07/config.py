"""The settings of the embedded 0.7 broker. Comments name the genuine broker's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_io.testing.config import BrokerConfig

_WEEK_MS = 7 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig07(BrokerConfig):
    """The settings of one broker. The defaults suit tests and demos, which read what they have just written.

    Readers see only flushed messages [kafka-0.7: Flushing]. A genuine broker flushes after 10,000 messages or 1 s, so a
    load that begins soon after a producer has ended does not find its last messages. This one flushes at each PRODUCE.
    """

    topic_partitions: Mapping[str, int] = field(default_factory=dict)  # topic.partition.count.map
    topic_segment_bytes: Mapping[str, int] = field(default_factory=dict)  # topic.log.file.size
    flush_messages: int = 1  # log.flush.interval
    retention_ms: int | None = _WEEK_MS
    max_message_bytes: int = 1_000_000  # max.message.size: payload without its header

    def partitions_of(self, topic: str) -> int:
        """The number of partitions of a topic on this broker, whether they exist on disk or not."""
        return self.topic_partitions.get(topic, self.partitions)
