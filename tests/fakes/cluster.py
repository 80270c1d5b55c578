"""A fake cluster of Kafka 0.8 or later that a test can make misbehave. It uses real sockets and our own messages.

Each broker has a table with one handler per API, so a test can replace one handler and keep the others.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from kafka_io.messages.fetch import (
    BY_ID_SINCE,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from kafka_io.messages.handshake import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafka_io.messages.list_offsets import (
    EARLIEST_TIME,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_io.messages.metadata import (
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataResponse,
    MetadataTopic,
)
from kafka_io.model import Broker
from kafka_io.wire.conversation import ReceivedRequest, received
from kafka_io.wire.types import NULL_UUID
from tests.all_requests import REQUESTS

_MAX_REQUEST = 100 * 1024 * 1024  # socket.request.max.bytes: a broker closes the connection on more
_OFFERED = (ApiVersionsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest)
EVERYTHING = {kind.API.key: kind.API.versions for kind in _OFFERED}
Handler = Callable[[ReceivedRequest], Any]
"""Answers a request: it returns the answer as a message or as bytes, SILENCE or CLOSE."""

SILENCE, CLOSE = object(), object()
NOT_LEADER, OUT_OF_RANGE, UNKNOWN_TOPIC, INVALID_TOPIC, UNKNOWN_TOPIC_ID = 6, 1, 3, 17, 100


@dataclass(slots=True, kw_only=True)
class Log:
    """One partition: its entries, each with its last offset, and the number of the broker that leads it."""

    entries: list[tuple[int, bytes]]
    end: int
    start: int = 0
    stable: int | None = None
    leader: int = 0
    epoch: int = 5
    aborted: tuple[Any, ...] = ()

    def read(self, offset: int, size: int) -> bytes:
        """The entries from the one with `offset` to the end: at most `size` bytes, but at least the first entry."""
        wanted = [data for last, data in self.entries if last >= offset]
        return b"".join(wanted)[: max(size, len(wanted[0]))] if wanted else b""


@dataclass(slots=True, kw_only=True)
class FakeCluster:
    """Brokers 0 and 1 with one topic. They serve as long as the `with` block lasts."""

    logs: dict[int, Log]
    topic: str = "clicks"
    topic_id: UUID = NULL_UUID
    offered: Mapping[int, tuple[int, int]] = field(default_factory=lambda: EVERYTHING)
    brokers: list["FakeBroker"] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.brokers = [FakeBroker(self, number) for number in (0, 1)]
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers:
            broker.close()

    @property
    def bootstrap(self) -> tuple[Broker, ...]:
        """The addresses of the brokers, for a client's bootstrap."""
        return tuple(Broker(-1, "127.0.0.1", broker.port) for broker in self.brokers)

    def heard(self, api: int) -> list[ReceivedRequest]:
        """The requests of one API that any broker received."""
        return [request for broker in self.brokers for request in broker.heard if request.api.key == api]

    def metadata(self, received_request: ReceivedRequest) -> MetadataResponse:
        """The answer of any broker to a Metadata request."""
        request: Any = received_request.request
        requested = request.topics
        named = None if not requested else {topic.name for topic in requested}
        partitions = tuple(
            MetadataPartition(
                error_code=0,
                partition_index=number,
                leader_id=log.leader,
                leader_epoch=log.epoch,
                replica_nodes=(0, 1),
                isr_nodes=(0, 1),
            )
            for number, log in self.logs.items()
        )
        metadata_topic = MetadataTopic(error_code=0, name=self.topic, topic_id=self.topic_id, partitions=partitions)
        unknown = [
            MetadataTopic(error_code=INVALID_TOPIC if "/" in name else UNKNOWN_TOPIC, name=name, partitions=())
            for name in named or ()
            if name != self.topic
        ]
        topics = [metadata_topic] if named is None or self.topic in named else []
        brokers = tuple(
            MetadataBroker(node_id=number, host="127.0.0.1", port=broker.port)
            for number, broker in enumerate(self.brokers)
        )
        return MetadataResponse(brokers=brokers, topics=(*topics, *unknown))

    def list_offsets(self, broker: int, received_request: ReceivedRequest) -> ListOffsetsResponse:
        """The answer of `broker` to a ListOffsets request: an error for partitions that it does not lead."""
        request: Any = received_request.request
        [topic] = request.topics
        answers = []
        for partition in topic.partitions:
            log = self.logs[partition.partition_index]
            stable = log.end if log.stable is None else log.stable
            latest = stable if request.isolation_level else log.end
            # All records count as written in the first millisecond of 1970: each later time is after them.
            offset = log.start if partition.timestamp in {EARLIEST_TIME, 0} else latest
            error = 0 if log.leader == broker else NOT_LEADER
            offsets: dict[str, Any] = (
                {"old_style_offsets": (offset,)} if received_request.version == 0 else {"offset": offset}
            )
            answers.append(
                ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error, **offsets)
            )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers)),))

    def fetch(self, broker: int, received_request: ReceivedRequest) -> FetchResponse:
        """The answer of `broker` to a Fetch request: an error for partitions that it does not lead.

        From v3 on, `max_bytes` bounds the answer, which is filled in the order of the request.
        """
        request: Any = received_request.request
        [topic] = request.topics
        room = request.max_bytes
        answers = []
        for partition in topic.partitions:
            log = self.logs[partition.partition]
            error = 0 if log.leader == broker else NOT_LEADER
            if received_request.version >= BY_ID_SINCE and topic.topic_id != self.topic_id:
                error = UNKNOWN_TOPIC_ID
            if not error and not log.start <= partition.fetch_offset <= log.end:
                error = OUT_OF_RANGE
            limit = min(room, partition.partition_max_bytes)
            records = b"" if error or not limit else log.read(partition.fetch_offset, limit)
            room = max(0, room - len(records))
            answers.append(
                FetchPartitionResponse(
                    partition_index=partition.partition,
                    error_code=error,
                    high_watermark=log.end,
                    records=records,
                    aborted_transactions=log.aborted if received_request.version >= 4 else None,
                )
            )
        named: dict[str, Any] = (
            {"topic": topic.topic} if received_request.version < BY_ID_SINCE else {"topic_id": topic.topic_id}
        )
        return FetchResponse(responses=(FetchTopicResponse(partitions=tuple(answers), **named),))


class FakeBroker:
    """One broker, with a thread per connection. `handlers` are by API key; `heard` has all requests so far."""

    def __init__(self, cluster: FakeCluster, number: int) -> None:
        self.heard: list[ReceivedRequest] = []
        self.connections = 0
        self.handlers: dict[int, Handler] = {
            ApiVersionsRequest.API.key: lambda _: _versions(cluster.offered),
            MetadataRequest.API.key: cluster.metadata,
            ListOffsetsRequest.API.key: lambda received_request: cluster.list_offsets(number, received_request),
            FetchRequest.API.key: lambda received_request: cluster.fetch(number, received_request),
        }
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept, name=f"fake-broker-{number}")]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:  # the broker was closed
                return
            self.connections += 1
            self._sockets.append(connected)
            thread = threading.Thread(target=self._serve, args=(connected,), name=f"fake-connection-{self.port}")
            self._threads.append(thread)
            thread.start()

    def _serve(self, connected: socket.socket) -> None:
        with connected, contextlib.suppress(OSError):  # the client may leave at any time
            while size := _read(connected, 4):
                (count,) = struct.unpack(">i", size)
                if count > _MAX_REQUEST:
                    return
                received_request = received(memoryview(_read(connected, count)), REQUESTS)
                self.heard.append(received_request)
                answer = self.handlers[received_request.api.key](received_request)
                if answer is CLOSE:
                    return
                if answer is not SILENCE:
                    connected.sendall(answer if isinstance(answer, bytes) else received_request.answered(answer))

    def drop_connections(self) -> None:
        """End all open connections. The broker still accepts new ones."""
        for connection in self._sockets:
            with contextlib.suppress(OSError):  # the connection is closed already
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening, end all connections and join all threads. A second call does nothing."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._threads[0].join()
        self.drop_connections()
        for thread in self._threads:
            thread.join()


def _read(connected: socket.socket, count: int) -> bytes:
    """Read `count` bytes; returns an empty value if the client left before."""
    data = b""
    while len(data) < count:
        more = connected.recv(count - len(data))
        if not more:
            return b""
        data += more
    return data


def _versions(offered: Mapping[int, tuple[int, int]]) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=first, max_version=last) for key, (first, last) in offered.items()]
    return ApiVersionsResponse(error_code=0, api_keys=tuple(keys))
