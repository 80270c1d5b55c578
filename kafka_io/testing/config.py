"""The settings that the embedded brokers of all generations have. Comments name the genuine broker's settings."""

from dataclasses import dataclass
from pathlib import Path

_MIB = 1024 * 1024
_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The settings of one embedded broker. A setting that is called otherwise in 0.7 has both names."""

    broker_id: int  # broker.id; brokerid
    data_dir: Path  # log.dirs; log.dir
    host: str = "127.0.0.1"  # listeners; hostname: the address to listen on, which clients and ZooKeeper receive
    port: int = 0  # 0 chooses a free one
    partitions: int = 1  # num.partitions
    segment_bytes: int = 512 * _MIB  # log.segment.bytes; log.file.size
    roll_ms: int = 7 * 24 * _HOUR_MS  # log.roll.ms; log.roll.hours
    flush_interval_ms: int = 1000  # log.flush.interval.ms; log.default.flush.interval.ms
    retention_ms: int | None = None  # log.retention.ms; log.retention.hours. None means no limit
    retention_bytes: int | None = None  # log.retention.bytes; log.retention.size, per partition
    retention_check_ms: int = 60 * 1000  # log.retention.check.interval.ms; log.cleanup.interval.mins
    max_request_bytes: int = 100 * _MIB  # socket.request.max.bytes; max.socket.request.bytes
    max_connections: int = 256  # each has a thread; a further client is closed at once
    send_timeout_ms: int = 30_000  # a client that takes no byte for this long is closed
