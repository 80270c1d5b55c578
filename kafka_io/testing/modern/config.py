"""The settings of the embedded broker of 0.8 and later. Comments name the genuine broker's settings."""

from dataclasses import dataclass

from kafka_io.model import Generation
from kafka_io.testing.config import BrokerConfig

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernBrokerConfig(BrokerConfig):
    """The settings of one broker, which is a cluster of its own without replicas.

    Retention uses the timestamps of records, as a genuine broker does from 0.10 on. Records of demos and tests are
    often years old, so retention has no limit by default.

    Raises:
        ValueError: the generation is 0.7, which `BrokerConfig07` configures.
    """

    generation: Generation = Generation.MODERN
    auto_create_topics: bool = True  # auto.create.topics.enable
    max_message_bytes: int = _MIB + 12  # message.max.bytes: one batch
    max_decompressed_bytes: int = 256 * _MIB  # of the records of one batch, for its validation
    max_fetch_bytes: int = 55 * _MIB  # fetch.max.bytes
    max_wait_ms: int = 30_000  # the longest time that a fetch waits, whatever the client requests
    max_partitions: int = 10_000  # of all topics; each has a directory and an open file
    max_groups: int = 10_000  # with members, or with offsets
    max_group_members: int = 1000  # group.max.size
    max_session_timeout_ms: int = 30 * 60 * 1000  # group.max.session.timeout.ms
    max_transactional_ids: int = 10_000
    max_transaction_timeout_ms: int = 15 * 60 * 1000  # transaction.max.timeout.ms
    max_metadata_bytes: int = 4096  # offset.metadata.max.bytes

    def __post_init__(self) -> None:
        if self.generation is Generation.V07:
            raise ValueError("ModernBrokerConfig cannot configure a broker of 0.7; use BrokerConfig07")
