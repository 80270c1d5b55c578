"""The settings of the embedded 0.7 broker. Comments name the genuine broker's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafka_io.v07.conversation import MAX_REQUEST_BYTES

_MIB = 1024 * 1024
_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig07:
    """The settings of one broker. The defaults suit a demo, which writes much at once and reads it soon after.

    A genuine broker flushes after 10,000 messages or 1 s. This one has the same number of messages, but 200 ms: readers
    see only flushed messages [kafka-0.7: Flushing], and a demo should not wait a second for them.
    """

    broker_id: int  # brokerid
    data_dir: Path  # log.dir
    host: str = "127.0.0.1"  # hostname: the address to listen on, which is also registered in ZooKeeper
    port: int = 0  # port; 0 chooses a free one
    partitions: int = 1  # num.partitions
    topic_partitions: Mapping[str, int] = field(default_factory=dict)  # topic.partition.count.map
    segment_bytes: int = 512 * _MIB  # log.file.size
    topic_segment_bytes: Mapping[str, int] = field(default_factory=dict)  # topic.log.file.size
    flush_messages: int = 10_000  # log.flush.interval
    flush_interval_ms: int = 200  # log.default.flush.interval.ms
    roll_ms: int = 7 * 24 * _HOUR_MS  # log.roll.hours
    retention_ms: int = 7 * 24 * _HOUR_MS  # log.retention.hours
    retention_bytes: int | None = None  # log.retention.size, per partition
    retention_check_ms: int = 60 * 1000  # log.cleanup.interval.mins
    max_message_bytes: int = 1_000_000  # max.message.size: payload without its header
    max_request_bytes: int = MAX_REQUEST_BYTES  # max.socket.request.bytes
    max_connections: int = 256  # each has a thread; a further client is closed at once
    send_timeout_ms: int = 30_000  # a client that takes no byte for this long is closed

    def partitions_of(self, topic: str) -> int:
        """The number of partitions of a topic on this broker, whether they exist on disk or not."""
        return self.topic_partitions.get(topic, self.partitions)

    def segment_bytes_of(self, topic: str) -> int:
        """The size in bytes beyond which a segment of a topic is followed by a new one."""
        return self.topic_segment_bytes.get(topic, self.segment_bytes)
