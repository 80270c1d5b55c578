"""Metadata: asks for the brokers, the topics, and the leaders of their partitions."""

from kafka_io.messages.echoes import check_echo
from kafka_io.messages.shared import NodeAddress, ThrottledAnswer
from kafka_io.wire.schema import MIB, Request, Struct, wire
from kafka_io.wire.types import MANY_ITEMS, NULL_UUID, Bool, Int16, Int32, String, Uuid

NO_OPERATIONS = -(2**31)  # authorized operations (KIP-430) that the request did not ask for


class MetadataBroker(NodeAddress):
    """A live broker, with the address of the listener that received the request."""

    rack: String | None = wire(since=1, null_since=1, default=None, ignorable=True)  # KIP-36


class MetadataPartition(Struct):
    """A partition; `leader_id` is -1 while it has no leader."""

    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = wire(since=7, default=-1, ignorable=True)  # KIP-320: recognises older metadata
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    offline_replicas: tuple[Int32, ...] = wire(since=5, default=(), ignorable=True)  # KIP-112


class MetadataTopic(Struct):
    """A topic; its name is null only if the request named an id."""

    error_code: Int16
    name: String | None = wire(null_since=12)  # KIP-516: null if only the id is known
    topic_id: Uuid = wire(since=10, default=NULL_UUID, ignorable=True)  # KIP-516: distinguishes incarnations
    is_internal: Bool = wire(since=1, default=False, ignorable=True)  # KIP-4
    partitions: tuple[MetadataPartition, ...]
    topic_authorized_operations: Int32 = wire(since=8, default=NO_OPERATIONS)  # KIP-430


class MetadataResponse(ThrottledAnswer, since=3):
    """The metadata of the cluster that the broker has. It may be out of date."""

    brokers: tuple[MetadataBroker, ...]
    cluster_id: String | None = wire(since=2, null_since=2, default=None, ignorable=True)  # KIP-78
    controller_id: Int32 = wire(since=1, default=-1, ignorable=True)  # KIP-4
    topics: tuple[MetadataTopic, ...] = wire(max_items=MANY_ITEMS)
    cluster_authorized_operations: Int32 = wire(since=8, until=10, default=NO_OPERATIONS)  # KIP-430
    error_code: Int16 = wire(since=13, default=0, ignorable=True)  # KIP-1102: asks the client to bootstrap again


class MetadataRequestTopic(Struct):
    """A topic by its name, or from v12 on by its id alone."""

    topic_id: Uuid = wire(since=10, default=NULL_UUID, ignorable=True)  # KIP-516: distinguishes incarnations
    name: String | None = wire(null_since=10)  # KIP-516: null if the request has an id


class MetadataRequest(Request[MetadataResponse], key=3, versions=(0, 13), flexible_from=9, max_answer_bytes=32 * MIB):
    """The requested topics. None requests all topics; in v0 an empty tuple does."""

    topics: tuple[MetadataRequestTopic, ...] | None = wire(null_since=1)  # KIP-4: null for all topics
    # Dropped before v4: there, a broker that creates topics automatically creates each topic that a request names.
    allow_auto_topic_creation: Bool = wire(since=4, default=True, ignorable=True)  # no KIP: KAFKA-5291
    include_cluster_authorized_operations: Bool = wire(since=8, until=10, default=False)  # KIP-430
    include_topic_authorized_operations: Bool = wire(since=8, default=False)  # KIP-430

    def check_answer(self, answer: MetadataResponse, _version: int, /) -> None:
        """A request without topics is for all of them."""
        key = "topic_id" if any(topic.name is None for topic in self.topics or ()) else "name"
        requested = [(getattr(topic, key),) for topic in self.topics] if self.topics else None
        check_echo(requested, ((getattr(topic, key),) for topic in answer.topics))
        # Fetch and Produce name topics by id alone: two topics with one id would be mixed up.
        check_echo(None, ((topic.topic_id,) for topic in answer.topics if topic.topic_id != NULL_UUID))
        for topic in answer.topics:
            check_echo(None, ((topic.name, partition.partition_index) for partition in topic.partitions))
