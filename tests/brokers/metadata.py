"""Reads a cluster's metadata with Metadata v0, which brokers of all eight versions answer."""

import socket
import struct
from dataclasses import dataclass

_TIMEOUT_S = 5.0
_METADATA = 3
_CLIENT = b"tests"
_ALL_TOPICS = 0  # an empty list of names requests all topics, and creates none


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition with its broker ids. The leader is -1 if there is none."""

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The brokers and partitions that a broker lists."""

    brokers: frozenset[int]
    partitions: tuple[Partition, ...]

    def leads(self, broker: int) -> bool:
        """Whether every partition whose only replica is on `broker` has a leader."""
        return all(partition.leader >= 0 for partition in self.partitions if partition.replicas == (broker,))

    def count_led(self, topic: str) -> int:
        """The number of partitions of `topic` that have a leader."""
        return sum(partition.topic == topic and partition.leader >= 0 for partition in self.partitions)

    def topics(self) -> set[str]:
        """The names of all topics."""
        return {partition.topic for partition in self.partitions}


def request_metadata(host: str, port: int) -> Metadata:
    """The metadata of the broker at `port`.

    Raises:
        OSError: the broker does not answer.
    """
    head = struct.pack(">hhih5si", _METADATA, 0, 1, len(_CLIENT), _CLIENT, _ALL_TOPICS)
    with socket.create_connection((host, port), _TIMEOUT_S) as connection, connection.makefile("rb") as stream:
        connection.sendall(struct.pack(">i", len(head)) + head)
        size = stream.read(4)
        answer = stream.read(int.from_bytes(size, "big"))
    if len(size) < 4 or len(answer) < int.from_bytes(size, "big"):
        raise ConnectionResetError(f"{host}:{port} closed the connection")
    return _read(_Fields(answer))


class _Fields:
    """Reads the fields of an answer one after the other. The first field comes after the correlation id."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._position = 4

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(f">{layout}", self._answer, self._position)
        self._position += struct.calcsize(f">{layout}")
        return int(value)

    def text(self) -> str:
        size = self.number("h")
        self._position += size
        return self._answer[self._position - size : self._position].decode()

    def ids(self) -> tuple[int, ...]:
        return tuple(self.number("i") for _ in range(self.number("i")))


def _read(fields: _Fields) -> Metadata:
    brokers = set()
    for _ in range(fields.number("i")):
        brokers.add(fields.number("i"))
        fields.text(), fields.number("i")  # host, port
    partitions: list[Partition] = []
    for _ in range(fields.number("i")):
        fields.number("h")  # the topic's error code
        topic = fields.text()
        partitions.extend(_partition(fields, topic) for _ in range(fields.number("i")))
    return Metadata(brokers=frozenset(brokers), partitions=tuple(partitions))


def _partition(fields: _Fields, topic: str) -> Partition:
    fields.number("h")  # the partition's error code
    partition, leader, replicas = fields.number("i"), fields.number("i"), fields.ids()
    fields.ids()  # the in-sync replicas
    return Partition(topic=topic, partition=partition, leader=leader, replicas=replicas)
