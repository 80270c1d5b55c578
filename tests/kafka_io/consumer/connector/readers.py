"""Threads that read streams during a test, and the nodes of a group in ZooKeeper."""

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
    """Reads a stream on a thread of its own, until the stream ends."""

    def __init__(self, stream: MessageStream) -> None:
        self.messages: list[ConsumedMessage] = []
        self._stream = stream
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    @property
    def values(self) -> list[bytes | None]:
        """The values that were read so far."""
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
    """The result of `reached` as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := reached()):
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.05)
    return result


def below(nodes: KazooClient, path: str) -> dict[str, str]:
    """The values of the child nodes of a path, by name; none if the path does not exist."""
    values = {}
    for name in nodes.get_children(path) if nodes.exists(path) else ():
        with suppress(NoNodeError):  # it may be deleted after it was listed
            values[name] = nodes.get(f"{path}/{name}")[0].decode()
    return values


def owners(nodes: KazooClient, topic: str = "clicks") -> dict[str, str]:
    """The owner of each partition of a topic."""
    return below(nodes, f"/consumers/readers/owners/{topic}")


def offsets(nodes: KazooClient, topic: str = "clicks") -> dict[str, int]:
    """The committed offset of each partition of a topic."""
    return {name: int(value) for name, value in below(nodes, f"/consumers/readers/offsets/{topic}").items()}
