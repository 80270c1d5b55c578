"""What the tests of the broker from 0.8 on say and hear: requests over a bare socket, batches of records."""

import socket
from typing import Any, Self, TypeVar

from kafka_io.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_io.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic
from kafka_io.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_io.messages.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceTopic,
)
from kafka_io.records.build import NO_PRODUCER, Record, record_batch
from kafka_io.records.entries import Asked
from kafka_io.records.logs import decode
from kafka_io.wire.conversation import ClientConversation, Versioned
from kafka_io.wire.schema import Request

AnswerT = TypeVar("AnswerT")

TIMEOUT_S = 10.0
START_MS = 1_700_000_000_000


def numbered(count: int, *, first: int = 0) -> list[Record]:
    """Records as a producer numbers them, from 0 on, whose values tell which they are; a second apart."""
    return [
        Record(offset=index, timestamp=START_MS + 1000 * number, key=b"k", value=b"value-%d" % number)
        for index, number in enumerate(range(first, first + count))
    ]


def batch(count: int = 3, *, first: int = 0, codec: int = 0, producer: tuple[int, int, int] = NO_PRODUCER) -> bytearray:
    """A batch of numbered records as a producer sends it."""
    return bytearray(record_batch(numbered(count, first=first), codec=codec, producer=producer))


def values(data: bytes | bytearray | memoryview | None, at: int = 0) -> list[bytes]:
    """The values in the entries of a fetch answer."""
    return [
        value
        for decoded in decode(bytes(data or b""), Asked(at=at), columns=("value",))
        for value in decoded.batch.column("value").to_pylist()
    ]


def expected_values(count: int, *, first: int = 0) -> list[bytes]:
    """The values of `numbered` records."""
    return [record.value or b"" for record in numbered(count, first=first)]


class Client:
    """A socket and a conversation; every answer is waited for."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._conversation = ClientConversation("tests")

    def send(self, request: Request[Any], version: int | None = None) -> None:
        """Put a request on the wire, in the newest version unless told otherwise."""
        version = request.API.versions[1] if version is None else version
        self.socket.sendall(self._conversation.send(Versioned(request, version)))

    def receive(self) -> Any:
        """The next answer."""
        while True:
            count = self.socket.recv_into(self._conversation.space())
            if not count:
                raise ConnectionError("the broker closed the connection")
            answer = self._conversation.filled(count)
            if answer is not None:
                return answer

    def ask(self, request: Request[AnswerT], version: int | None = None) -> AnswerT:
        """Send, and the answer."""
        self.send(request, version)
        answer: AnswerT = self.receive()
        return answer

    def is_closed(self) -> bool:
        """Whether the broker has closed the connection; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def create(self, topic: str, partitions: int = 1) -> int:
        """Make a topic; the error code."""
        new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        return self.ask(CreateTopicsRequest(topics=(new,))).topics[0].error_code

    def produce(
        self, topic: str, records: bytes | bytearray, *, partition: int = 0, version: int = 9, acks: int = -1
    ) -> ProducePartitionResponse:
        """Publish to one partition, by the topic's name."""
        request = produce_request(topic, records, partition=partition, acks=acks)
        return self.ask(request, version).responses[0].partition_responses[0]

    def fetch(
        self, topic: str, at: int = 0, *, version: int = 12, most: int = 1_000_000, wait_ms: int = 0
    ) -> FetchPartitionResponse:
        """What there is of partition 0, by the topic's name."""
        request = fetch_request(topic, at, most=most, wait_ms=wait_ms)
        return self.ask(request, version).responses[0].partitions[0]

    def offset_at(self, topic: str, time_ms: int, *, version: int = 7) -> tuple[int, int]:
        """Code and offset that ListOffsets has for a time."""
        one = ListOffsetsPartition(partition_index=0, timestamp=time_ms)
        request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=(one,)),))
        found = self.ask(request, version).topics[0].partitions[0]
        return found.error_code, found.offset

    def close(self) -> None:
        """Leave."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def produce_request(topic: str, records: bytes | bytearray, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    """Records for one partition."""
    one = ProducePartition(index=partition, records=bytes(records))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(ProduceTopic(name=topic, partition_data=(one,)),))


def fetch_request(topic: str, at: int = 0, *, most: int = 1_000_000, wait_ms: int = 0) -> FetchRequest:
    """A fetch of partition 0."""
    one = FetchPartition(partition=0, fetch_offset=at, partition_max_bytes=most)
    return FetchRequest(max_wait_ms=wait_ms, topics=(FetchTopic(topic=topic, partitions=(one,)),))
