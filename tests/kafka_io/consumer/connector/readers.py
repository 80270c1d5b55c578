"""Streams that are read beside the test, and what ZooKeeper shows of a group meanwhile."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafka_io.consumer.connector.connector import ConsumerConnector
from kafka_io.consumer.connector.stream import MessageStream
from kafka_io.consumer.fetched import ConsumedMessage

PATIENCE_S = 120.0


class Reader:
    """Reads a stream on a thread of its own, for as long as the stream goes."""

    def __init__(self, stream: MessageStream) -> None:
        self.messages: list[ConsumedMessage] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    @property
    def values(self) -> list[bytes | None]:
        """What was read so far."""
        return [message.value for message in tuple(self.messages)]

    def _read(self) -> None:
        self.messages.extend(self._stream)

    def join(self) -> None:
        """Wait for the end of the stream."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@contextmanager
def reading(streams: Iterable[MessageStream], connector: ConsumerConnector) -> Iterator[list[Reader]]:
    """Reads all streams until the connector is shut down, at the latest at the end of the block."""
    readers = [Reader(stream) for stream in streams]
    try:
        yield readers
    finally:
        connector.shutdown()
        for reader in readers:
            reader.join()


def until(reached: Callable[[], Any]) -> Any:
    """What `reached` tells once it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := reached()):
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)
    return found


def below(nodes: KazooClient, path: str) -> dict[str, str]:
    """The values of the nodes below a path that may not be there."""
    found = {}
    for name in nodes.get_children(path) if nodes.exists(path) else ():
        with suppress(NoNodeError):  # it may go between being listed and being read
            found[name] = nodes.get(f"{path}/{name}")[0].decode()
    return found


def owners(nodes: KazooClient, topic: str = "clicks") -> dict[str, str]:
    """Who owns what of a topic."""
    return below(nodes, f"/consumers/readers/owners/{topic}")


def offsets(nodes: KazooClient, topic: str = "clicks") -> dict[str, int]:
    """The group's offsets of a topic."""
    return {name: int(value) for name, value in below(nodes, f"/consumers/readers/offsets/{topic}").items()}
