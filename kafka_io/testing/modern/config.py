"""The settings of the embedded broker of 0.8 and later. Comments name the genuine broker's settings."""

from dataclasses import dataclass
from pathlib import Path

from kafka_io.model import Generation

_MIB = 1024 * 1024
_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernBrokerConfig:
    """The settings of one broker, which is a cluster of its own without replicas.

    Retention uses the timestamps of records, as a genuine broker does from 0.10 on. Records of demos and tests are
    often years old, so retention has no limit by default.

    Raises:
        ValueError: the generation is 0.7, which `BrokerConfig07` configures.
    """

    broker_id: int  # broker.id
    data_dir: Path  # log.dirs
    generation: Generation = Generation.MODERN
    host: str = "127.0.0.1"  # listeners: the address to listen on, which clients and ZooKeeper receive
    port: int = 0  # 0 chooses a free one
    partitions: int = 1  # num.partitions
    auto_create_topics: bool = True  # auto.create.topics.enable
    segment_bytes: int = 512 * _MIB  # log.segment.bytes
    roll_ms: int = 7 * 24 * _HOUR_MS  # log.roll.ms
    flush_interval_ms: int = 1000  # log.flush.interval.ms
    retention_ms: int | None = None  # log.retention.ms
    retention_bytes: int | None = None  # log.retention.bytes, per partition
    retention_check_ms: int = 60 * 1000  # log.retention.check.interval.ms
    max_message_bytes: int = _MIB + 12  # message.max.bytes: one batch
    max_decompressed_bytes: int = 256 * _MIB  # of the records of one batch, for its validation
    max_request_bytes: int = 100 * _MIB  # socket.request.max.bytes
    max_fetch_bytes: int = 55 * _MIB  # fetch.max.bytes
    max_wait_ms: int = 30_000  # the longest time that a fetch waits, whatever the client requests
    max_partitions: int = 10_000  # of all topics; each has a directory and an open file
    max_groups: int = 10_000  # with members, or with offsets
    max_group_members: int = 1000  # group.max.size
    max_session_timeout_ms: int = 30 * 60 * 1000  # group.max.session.timeout.ms
    max_transactional_ids: int = 10_000
    max_transaction_timeout_ms: int = 15 * 60 * 1000  # transaction.max.timeout.ms
    max_metadata_bytes: int = 4096  # offset.metadata.max.bytes
    max_connections: int = 256  # each has a thread; a further client is closed at once
    send_timeout_ms: int = 30_000  # a client that takes no byte for this long is closed

    def __post_init__(self) -> None:
        if self.generation is Generation.V07:
            raise ValueError("ModernBrokerConfig cannot configure a broker of 0.7; use BrokerConfig07")
