"""How a producer sends; the names of the documents' settings stand beside ours."""

from dataclasses import dataclass, field
from typing import Literal

from kafka_io.client.link import Patience
from kafka_io.client.producer.callbacks import CallbackHandler, EventHandler, SendingHandler
from kafka_io.client.producer.encoder import BytesEncoder, Encoder
from kafka_io.client.producer.partitioner import Partitioner
from kafka_io.client.v07.sets import MAX_MESSAGE_BYTES
from kafka_io.compression import CODEC_NUMBERS

_ACKS = {0: 0, 1: 1, "all": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """What a producer is told when it is opened.

        >>> settings = ProducerSettings(acks=1, compression="gzip", compressed_topics=frozenset({"views"}))
        >>> settings.codec_of("views"), settings.codec_of("clicks")
        (1, 0)

    Args:
        acks: who must have a batch before it counts as delivered: nobody, the partition's leader, or all replicas in
            sync. With 0, closing still waits until the broker has come to what was sent. 0.7 has no acknowledgements:
            there 0 sends and hopes, and the others ask the broker for an offset on the same connection. Its answer
            shows that everything before was taken in, though not yet flushed.
        compression: `none`, `gzip`, `snappy`, from 0.8.2 on `lz4`, from 2.1 on `zstd`.
        compressed_topics: those to compress; all if empty.
        encoder: makes bytes of values.
        key_encoder: makes bytes of keys.
        partitioner: None takes the generation's own: StringHashPartitioner in 0.7, Murmur2Partitioner later.
        batch_bytes: keys and values that are sent, and compressed, together at most; one message may be larger.
        max_request_bytes: keys and values that are sent to a broker in one request at most; the same holds.
        max_message_bytes: in 0.7, what the broker would drop without a word; later brokers refuse by themselves.
        patience: the deadline of each answer, and how often what may pass is tried again.
        request_timeout_ms: how long the leader may wait for the replicas.
        idempotent: number batches, so that one that is sent again is stored once: with acks all, and from 0.11 on.
            Without, what is sent again after a lost answer is there twice.
        transactional_id: the name under which transactions are run; whoever had it before is shut out.
        transaction_timeout_ms: how long a transaction may take before brokers abort it.
        metadata_max_age_ms: how long a topic's partitions are taken as known.

    Raises:
        ValueError: what cannot be.
    """

    acks: Literal[0, 1, "all"] = "all"  # request.required.acks, acks
    compression: str = "none"  # compression.codec
    compressed_topics: frozenset[str] = frozenset()  # compressed.topics
    encoder: Encoder = field(default_factory=BytesEncoder)  # serializer.class
    key_encoder: Encoder = field(default_factory=BytesEncoder)  # key.serializer.class
    partitioner: Partitioner | None = None  # partitioner.class
    batch_bytes: int = 500_000
    max_request_bytes: int = 10_000_000  # max.request.size
    max_message_bytes: int = MAX_MESSAGE_BYTES  # max.message.size
    patience: Patience = field(default_factory=Patience)  # retries, retry.backoff.ms
    request_timeout_ms: int = 30_000  # request.timeout.ms
    idempotent: bool = True  # enable.idempotence
    transactional_id: str | None = None  # transactional.id
    transaction_timeout_ms: int = 60_000  # transaction.timeout.ms
    metadata_max_age_ms: int = 300_000  # metadata.max.age.ms

    def __post_init__(self) -> None:
        if self.acks not in _ACKS or self.compression not in CODEC_NUMBERS or self.batch_bytes < 1:
            raise ValueError(f"acks are 0, 1 or 'all', compression one of {', '.join(CODEC_NUMBERS)}, not {self}")
        if self.batch_bytes > self.max_message_bytes:
            raise ValueError("batch_bytes above max_message_bytes would refuse what fits alone")
        if self.transactional_id is not None and not self.numbered:
            raise ValueError("transactions need acks 'all' and idempotent")

    @property
    def required_acks(self) -> int:
        """As the wire has it: 0, 1, or -1 for all."""
        return _ACKS[self.acks]

    @property
    def numbered(self) -> bool:
        """Whether batches are numbered, where brokers can tell by it what they have."""
        return self.idempotent and self.acks == "all"

    def codec_of(self, topic: str) -> int:
        """The number of the codec for a topic's batches."""
        chosen = not self.compressed_topics or topic in self.compressed_topics
        return CODEC_NUMBERS[self.compression if chosen else "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """What an asynchronous producer is told about its queue.

        >>> queue = Queueing(queue_time_ms=20, batch_size=500, when_full="raise")
        >>> with open_producer(bootstrap=bootstrap, queue=queue) as producer:
        ...     futures = [producer.send("clicks", b"%d" % number) for number in range(3)]
        >>> [future.result().offset for future in futures]
        [0, 1, 2]

    Args:
        queue_time_ms: how long a message waits for others to be sent with.
        batch_size: as many messages are sent without waiting.
        queue_size: as many messages wait at most.
        when_full: `block` waits for room, `drop` gives the message back as a failure, `raise` raises QueueFull. What a
            future calls when it ends runs on the thread that makes room: it must not send where that may block.
        enqueue_timeout_ms: how long `block` waits before it raises; None is forever.
        close_timeout_s: how long closing waits for what is in the queue, if it is not told otherwise.
        callbacks: told of each stage.
        handler: handles what is taken from the queue.

    Raises:
        ValueError: what cannot be.
    """

    queue_time_ms: int = 5_000  # queue.time
    batch_size: int = 200  # batch.size
    queue_size: int = 10_000  # queue.size
    when_full: Literal["block", "drop", "raise"] = "block"  # queue.enqueueTimeout.ms
    enqueue_timeout_ms: int | None = None
    close_timeout_s: float = 30.0
    callbacks: CallbackHandler = field(default_factory=CallbackHandler)  # callback.handler
    handler: EventHandler = field(default_factory=SendingHandler)  # event.handler

    def __post_init__(self) -> None:
        if min(self.batch_size, self.queue_size) < 1 or self.queue_time_ms < 0:
            raise ValueError(f"a queue holds 1 message and sends 1 at least, not {self}")
        if self.when_full not in {"block", "drop", "raise"}:
            raise ValueError(f"when_full is block, drop or raise, not {self.when_full!r}")
