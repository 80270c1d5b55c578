"""The embedded broker of Kafka 0.7: the answers to its five requests, its sessions, its entries in ZooKeeper.

Sources: [kafka-0.7: Requests, Errors].

A reply is a sequence of bytes made here and of regions of the log, in the order in which they go out. Only the two
fetches answer with error codes. After any other error the session closes the socket, as a genuine broker does.
"""

import logging
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar

from kafka_io.errors import BrokerError, TooLarge, Where
from kafka_io.model import Broker
from kafka_io.records.v07.decoder import validate_message_set
from kafka_io.testing.broker import EmbeddedBroker, wall_ms
from kafka_io.testing.client_session import serve_frames
from kafka_io.testing.listener import ServeClient
from kafka_io.testing.segment_file import FileRegion
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.logs import BrokerLogs07
from kafka_io.v07.messages import (
    API_BYTES,
    EARLIEST_TIME,
    LATEST_TIME,
    RANDOM_PARTITION,
    AnyRequest,
    FetchRequest07,
    MultiFetchRequest07,
    MultiProduceRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
    ProduceRequest07,
    decode_request,
)
from kafka_io.wire.framing import Frames
from kafka_io.wire.primitives import int16, int32
from kafka_io.zookeeper.zookeeper import ZooKeeper

logger = logging.getLogger(__name__)

Reply = tuple[bytes | FileRegion, ...]

_OK = int16(0)
_INT32_MAX = 2**31 - 1


def _fetch(request: FetchRequest07, logs: BrokerLogs07) -> Reply:
    """FETCH: `size | error | message set`. The set is empty at the end of the log, and if the log does not exist yet.

    `size` counts the error code and what follows. A negative `max_size` makes it 1 or less, which breaks the stream of
    that client. A genuine broker does the same, and there is no error code for it [kafka-0.7: Fetch].
    """
    try:
        log = logs.find(request.topic, request.partition)
        region = None if log is None else log.read(request.offset, request.max_size)
    except BrokerError as error:
        return frame(int16(error.code))
    return frame(_OK, region) if region else frame(_OK)


def _multifetch(request: MultiFetchRequest07, logs: BrokerLogs07) -> Reply:
    """MULTIFETCH: `size | 0 | (size | error | message set)*`. Only the parts can have errors, the whole has code 0."""
    parts = (part for fetch in request.fetches for part in _fetch(fetch, logs))
    return frame(_OK, *parts)


def _offsets(request: OffsetsRequest07, logs: BrokerLogs07) -> Reply:
    """OFFSETS: starts of segments, descending. A log that does not exist yet starts and ends at 0.

    Raises:
        BrokerError: the topic name is illegal, or there is no such partition.
        Corrupt: the number of offsets is negative.
    """
    log = logs.find(request.topic, request.partition)
    if log is not None:
        offsets = log.offsets_before(request.time, request.max_offsets)
    else:
        offsets = (0,) if request.time in {LATEST_TIME, EARLIEST_TIME} else ()
    return (OffsetsAnswer07(0, offsets).encode(),)


def _produce(request: ProduceRequest07, logs: BrokerLogs07) -> Reply:
    """PRODUCE: append the whole messages of the set. A message that is cut off at its end is dropped.

    The log is created before the set is checked, so even an empty or refused set makes its topic known. A message that
    is too large is dropped without any sign to the producer, as by a genuine broker.

    Raises:
        BrokerError: the topic name is illegal, or there is no such partition.
        WireError: a message, or one inside a compressed message, is invalid; nothing of the set is stored.
    """
    partition = request.partition
    if partition == RANDOM_PARTITION:
        partition = logs.any_partition(request.topic)
    log = logs.find_or_create(request.topic, partition)
    where = Where(topic=request.topic, partition=partition)
    summary = validate_message_set(request.message_set, where=where)
    max_bytes = logs.config.max_message_bytes
    size = summary.largest_payload
    if size > max_bytes:
        logger.warning("a message of %d bytes was dropped, max_message_bytes is %d [%s]", size, max_bytes, where)
    else:
        log.append(request.message_set[: summary.whole_bytes], summary.messages)
    return ()


def _multiproduce(request: MultiProduceRequest07, logs: BrokerLogs07) -> Reply:
    """MULTIPRODUCE: append set after set. The sets before an invalid one stay; the invalid one and the rest do not."""
    for produce in request.produces:
        _produce(produce, logs)
    return ()


HANDLERS: dict[type[AnyRequest], Callable[[Any, BrokerLogs07], Reply]] = {
    ProduceRequest07: _produce,
    FetchRequest07: _fetch,
    MultiFetchRequest07: _multifetch,
    MultiProduceRequest07: _multiproduce,
    OffsetsRequest07: _offsets,
}
"""The handler of each request. The reply is empty for the two kinds of produce, which are never answered.

Raises:
    BrokerError: the topic name is illegal, or there is no such partition.
    WireError: the request contains something invalid.
"""


def frame(*parts: bytes | FileRegion) -> Reply:
    """The parts, preceded by their size as an int32.

    Raises:
        TooLarge: the answer is larger than an int32 can say; a MULTIFETCH can ask for that much.
    """
    size = _size_of(parts)
    if size > _INT32_MAX:
        raise TooLarge(f"an answer of {size} bytes does not fit into a frame of {_INT32_MAX}; request less at once")
    return (int32(size), *parts)


def _size_of(reply: Reply) -> int:
    """The number of bytes that a reply announces. A region can have a negative size [kafka-0.7: Fetch]."""
    return sum(part.count if isinstance(part, FileRegion) else len(part) for part in reply)


def send(client: socket.socket, reply: Reply) -> None:
    """Send a reply. The kernel copies regions of the log from the file to the socket [kafka-0.7: Fetch].

    Raises:
        OSError: the client is gone, or took nothing before the send timeout of the socket.
        Truncated: a segment file is shorter than it was.
    """
    parts = [part for part in reply if _size_of((part,)) > 0]
    for index, part in enumerate(parts):
        if isinstance(part, FileRegion):
            _send_region(client, part)
        else:
            # MSG_MORE puts a header and the region after it into one packet, in spite of TCP_NODELAY.
            client.sendall(part, socket.MSG_MORE if index + 1 < len(parts) else 0)


def _send_region(client: socket.socket, region: FileRegion) -> None:
    position, end = region.position, region.position + region.count
    while position < end:
        sent = os.sendfile(client.fileno(), region.segment.descriptor, position, end - position)
        if sent == 0:  # only at the end of the file
            raise region.segment.truncated(position, end - position)
        position += sent


class BrokerServer07(EmbeddedBroker[BrokerConfig07, BrokerLogs07]):
    """A broker that speaks the 0.7 protocol over a log on disk.

    While it runs, it registers itself and each topic that it has a log of [kafka-0.7: Broker registry]. A topic is
    registered with its configured number of partitions, not with those that exist on disk. The nodes are ephemeral; the
    session creates them again after a lost session.
    """

    LOGS_TYPE: ClassVar[type[BrokerLogs07]] = BrokerLogs07

    def _start_services(self, parts: ExitStack, broker: Broker) -> ServeClient:  # noqa: ARG002 - clients need the logs alone
        return self._serve

    def _serve(self, client: socket.socket) -> None:
        def answer(frame: memoryview) -> None:
            request = decode_request(frame)
            send(client, HANDLERS[type(request)](request, self._logs))

        frames = Frames(min_size=API_BYTES, max_size=lambda: self.config.max_request_bytes)
        serve_frames(client, frames, answer, send_timeout_ms=self.config.send_timeout_ms)

    def _register_broker(self, zookeeper: ZooKeeper, broker: Broker) -> None:
        zookeeper.register_broker(broker, f"{broker.host}-{wall_ms()}")

    def _register_topic(self, zookeeper: ZooKeeper, topic: str) -> None:
        zookeeper.register_topic(topic, self.config.broker_id, self.config.partitions_of(topic))
