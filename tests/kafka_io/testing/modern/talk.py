"""Helpers for the tests of the broker from 0.8 on: requests over a plain socket, and batches of records."""

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
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.wire.conversation import ClientConversation, VersionedRequest
from kafka_io.wire.schema import Request

AnswerT = TypeVar("AnswerT")

TIMEOUT_S = 10.0
START_MS = 1_700_000_000_000


def numbered(count: int, *, first: int = 0) -> list[Record]:
    """Records one second apart, with offsets from 0 on as a producer writes them, and with numbers as values."""
    return [
        Record(offset=index, timestamp=START_MS + 1000 * number, key=b"k", value=b"value-%d" % number)
        for index, number in enumerate(range(first, first + count))
    ]


def batch(count: int = 3, *, first: int = 0, codec: int = 0, producer: tuple[int, int, int] = NO_PRODUCER) -> bytearray:
    """A batch of numbered records as a producer sends it."""
    return bytearray(record_batch(numbered(count, first=first), codec=codec, producer=producer))


def values(data: bytes | bytearray | memoryview | None, start: int = 0) -> list[bytes]:
    """The values in the entries of a fetch answer."""
    return [
        value
        for decoded in decode(bytes(data or b""), RequestedOffsets(start=start), columns=("value",))
        for value in decoded.batch.column("value").to_pylist()
    ]


def expected_values(count: int, *, first: int = 0) -> list[bytes]:
    """The values of `numbered` records."""
    return [record.value or b"" for record in numbered(count, first=first)]


class Client:
    """A connection to a broker."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._conversation = ClientConversation("tests")

    def send(self, request: Request[Any], version: int | None = None) -> None:
        """Send a request, in the newest version by default."""
        version = request.API.versions[1] if version is None else version
        self.socket.sendall(self._conversation.send(VersionedRequest(request, version)))

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
        """Send a request and wait for its answer."""
        self.send(request, version)
        answer: AnswerT = self.receive()
        return answer

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection. Returns whether it did."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def create(self, topic: str, partitions: int = 1) -> int:
        """Create a topic. Returns the error code."""
        new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        return self.ask(CreateTopicsRequest(topics=(new,))).topics[0].error_code

    def produce(
        self, topic: str, records: bytes | bytearray, *, partition: int = 0, version: int = 9, acks: int = -1
    ) -> ProducePartitionResponse:
        """Produce to one partition of the topic with this name."""
        request = produce_request(topic, records, partition=partition, acks=acks)
        return self.ask(request, version).responses[0].partition_responses[0]

    def fetch(
        self, topic: str, offset: int = 0, *, version: int = 12, max_bytes: int = 1_000_000, wait_ms: int = 0
    ) -> FetchPartitionResponse:
        """Fetch from partition 0 of the topic with this name."""
        request = fetch_request(topic, offset, max_bytes=max_bytes, wait_ms=wait_ms)
        return self.ask(request, version).responses[0].partitions[0]

    def offset_at(self, topic: str, time_ms: int, *, version: int = 7) -> tuple[int, int]:
        """The error code and the offset that ListOffsets returns for a time."""
        partition = ListOffsetsPartition(partition_index=0, timestamp=time_ms)
        request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),))
        response = self.ask(request, version).topics[0].partitions[0]
        return response.error_code, response.offset

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def produce_request(topic: str, records: bytes | bytearray, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    """A Produce request for one partition."""
    partition_data = ProducePartition(index=partition, records=bytes(records))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=(ProduceTopic(name=topic, partition_data=(partition_data,)),)
    )


def fetch_request(topic: str, offset: int = 0, *, max_bytes: int = 1_000_000, wait_ms: int = 0) -> FetchRequest:
    """A Fetch request for partition 0."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(max_wait_ms=wait_ms, topics=(FetchTopic(topic=topic, partitions=(partition,)),))
