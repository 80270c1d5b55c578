"""What an embedded broker is told when it starts. Names of the genuine settings stand beside ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafka_io.v07.conversation import MAX_REQUEST_BYTES

_MIB = 1024 * 1024
_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The settings of one broker; the defaults suit a demo: much is written at once, and seen soon after.

    A genuine broker ships with 10000 messages / 1 s between flushes. Ours keeps the first, and takes 200 ms for the
    second: readers see nothing that is not flushed (facts, 2), and nobody should wait a second for a demo.
    """

    broker_id: int  # brokerid
    data_dir: Path  # log.dir
    host: str = "127.0.0.1"  # hostname: bound, and told to ZooKeeper
    port: int = 0  # port; 0 takes a free one
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
    max_connections: int = 256  # a thread each; one client more is closed at once
    send_timeout_ms: int = 30_000  # a client that takes no byte for so long is given up

    def partitions_of(self, topic: str) -> int:
        """How many partitions `topic` has on this broker, whether they exist on disk or not."""
        return self.topic_partitions.get(topic, self.partitions)

    def segment_bytes_of(self, topic: str) -> int:
        """The size past which a segment of `topic` gets a successor."""
        return self.topic_segment_bytes.get(topic, self.segment_bytes)
