"""The settings of a producer; a comment beside each gives its name in Kafka's own clients."""

from dataclasses import dataclass, field
from typing import Literal

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.producer.callbacks import CallbackHandler, EventHandler
from kafka_io.producer.encoder import BytesEncoder, Encoder
from kafka_io.producer.partitioner import Partitioner

_ACKS = {0: 0, 1: 1, "all": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer sends; given to `open_producer`.

        >>> settings = ProducerSettings(acks=1, compression="gzip", compressed_topics=frozenset({"views"}))
        >>> settings.codec_of("views"), settings.codec_of("clicks")
        (1, 0)

    Args:
        acks: which replicas must have a batch before it counts as delivered: none (0), the partition's leader (1), or
            `all` that are in sync. With 0, closing still waits until the broker has processed every request. 0.7 has no
            acknowledgements: with 0 nothing is confirmed there; otherwise an OFFSETS request on the same connection
            shows that the broker accepted everything before it, although it may not have flushed it yet.
        compression: `none`, `gzip`, `snappy`, from 0.8.2 on `lz4`, from 2.1 on `zstd`.
        compressed_topics: the topics to compress; all if empty.
        encoder: turns values into bytes.
        key_encoder: turns keys into bytes.
        partitioner: None is the generation's own: StringHashPartitioner in 0.7, Murmur2Partitioner later.
        batch_bytes: maximum size of the keys and values that are sent and compressed together. A single message may be
            larger.
        max_request_bytes: maximum size of the keys and values in one request to a broker. A single batch may be larger.
        max_message_bytes: in 0.7, a larger message is refused here, because a broker would drop it without an error. A
            compressed batch counts as one message.
        retry_policy: the deadline for each answer, and how retriable errors are retried.
        request_timeout_ms: how long the leader may wait for the replicas.
        idempotent: number the batches, so that a batch that is sent again is stored once; with acks `all`, from 0.11
            on. Otherwise a batch that is sent again after a lost answer is stored twice.
        transactional_id: the id for transactions; the previous producer with this id is fenced off.
        transaction_timeout_ms: brokers abort a transaction that takes longer.
        metadata_max_age_ms: a topic's partitions are listed again after this time.

    Raises:
        ValueError: a value is not allowed.
    """

    acks: Literal[0, 1, "all"] = "all"  # request.required.acks, acks
    compression: str = "none"  # compression.codec
    compressed_topics: frozenset[str] = frozenset()  # compressed.topics
    encoder: Encoder = field(default_factory=BytesEncoder)  # serializer.class
    key_encoder: Encoder = field(default_factory=BytesEncoder)  # key.serializer.class
    partitioner: Partitioner | None = None  # partitioner.class
    batch_bytes: int = 500_000
    max_request_bytes: int = 10_000_000  # max.request.size
    max_message_bytes: int = 1_000_000  # max.message.size, the default of a genuine broker
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)  # retries, retry.backoff.ms
    request_timeout_ms: int = 30_000  # request.timeout.ms
    idempotent: bool = True  # enable.idempotence
    transactional_id: str | None = None  # transactional.id
    transaction_timeout_ms: int = 60_000  # transaction.timeout.ms
    metadata_max_age_ms: int = 300_000  # metadata.max.age.ms

    def __post_init__(self) -> None:
        if self.acks not in _ACKS or self.compression not in CODEC_NUMBERS or self.batch_bytes < 1:
            codecs = ", ".join(CODEC_NUMBERS)
            raise ValueError(f"acks must be 0, 1 or 'all', compression one of {codecs}, batch_bytes positive: {self}")
        if self.batch_bytes > self.max_message_bytes:
            raise ValueError("batch_bytes must not exceed max_message_bytes: a batch is compressed to one message")
        if self.transactional_id is not None and not self.numbered:
            raise ValueError("a transactional_id needs acks='all' and idempotent=True")

    @property
    def required_acks(self) -> int:
        """The number in Produce requests: 0, 1, or -1 for all."""
        return _ACKS[self.acks]

    @property
    def numbered(self) -> bool:
        """Whether batches get sequence numbers, by which brokers from 0.11 on recognise duplicates."""
        return self.idempotent and self.acks == "all"

    def codec_of(self, topic: str) -> int:
        """The number of the codec for a topic's batches."""
        compressed = not self.compressed_topics or topic in self.compressed_topics
        return CODEC_NUMBERS[self.compression if compressed else "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """The queue of an asynchronous producer; given to `open_producer`.

        >>> queue = Queueing(queue_time_ms=20, batch_size=500, when_full="raise")
        >>> with open_producer(bootstrap=bootstrap, queue=queue) as producer:
        ...     futures = [producer.send("clicks", b"%d" % number) for number in range(3)]
        >>> [future.result().offset for future in futures]
        [0, 1, 2]

    Args:
        queue_time_ms: how long a message waits for others, to be sent together.
        batch_size: this many messages are sent together without further waiting.
        queue_size: the maximum number of waiting messages.
        when_full: `block` waits for room, `drop` returns the message as a failure, `raise` raises QueueFull. A future's
            done-callbacks run on the thread that empties the queue: they must not send if that may block.
        enqueue_timeout_ms: how long `block` waits before it raises QueueFull; None is without limit.
        close_timeout_s: how long `flush` and `close` wait by default.
        callbacks: called at each stage of a message.
        handler: handles the batches that are taken from the queue; without it they are sent unchanged.

    Raises:
        ValueError: a value is not allowed.
    """

    queue_time_ms: int = 5_000  # queue.time
    batch_size: int = 200  # batch.size
    queue_size: int = 10_000  # queue.size
    when_full: Literal["block", "drop", "raise"] = "block"  # queue.enqueueTimeout.ms
    enqueue_timeout_ms: int | None = None
    close_timeout_s: float = 30.0
    callbacks: CallbackHandler = field(default_factory=CallbackHandler)  # callback.handler
    handler: EventHandler | None = None  # event.handler

    def __post_init__(self) -> None:
        if min(self.batch_size, self.queue_size) < 1 or self.queue_time_ms < 0:
            raise ValueError(f"batch_size and queue_size must be at least 1, queue_time_ms at least 0: {self}")
        if self.when_full not in {"block", "drop", "raise"}:
            raise ValueError(f"when_full must be block, drop or raise, not {self.when_full!r}")
