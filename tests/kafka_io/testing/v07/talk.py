"""Helpers for the tests of the 0.7 broker: messages, requests over a plain socket, and captured exchanges."""

import json
import socket
import struct
import zlib
from pathlib import Path
from typing import Any, Self

from kafka_io.v07.messages import (
    AnyRequest,
    FetchRequest07,
    OffsetsRequest07,
    ProduceRequest07,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "v07"
TIMEOUT_S = 10.0
ILLEGAL_TOPIC = bytes.fromhex("00000002ffff")


def golden(name: str) -> list[dict[str, Any]]:
    """The captured exchanges with a genuine broker in one file of tests/golden/v07/wire."""
    records: list[dict[str, Any]] = json.loads((GOLDEN / "wire" / f"{name}.json").read_text())
    return records


def message(payload: bytes, *, magic: int = 1, attributes: int = 0) -> bytes:
    """One valid message."""
    header = bytes((magic, attributes)) if magic else b"\x00"
    body = header + struct.pack(">I", zlib.crc32(payload)) + payload
    return struct.pack(">i", len(body)) + body


def numbered(count: int, *, first: int = 0) -> list[bytes]:
    """Different messages of 20 bytes each."""
    return [message(f"message-{number:02d}".encode()) for number in range(first, first + count)]


class Client:
    """A connection to a broker. It knows frames, but not what they contain."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: AnyRequest | bytes) -> None:
        """Send a request, or any bytes."""
        self.socket.sendall(request if isinstance(request, bytes) else request.encode())

    def read(self, count: int) -> bytes:
        """`count` bytes; fewer if the broker closes the connection before."""
        data = b""
        while len(data) < count:
            try:
                received = self.socket.recv(count - len(data))
            except ConnectionResetError:  # the broker closed the socket before it had read all our bytes
                break
            if not received:
                break
            data += received
        return data

    def frame(self) -> bytes:
        """The next answer with its size; empty if the broker closes the connection."""
        header = self.read(4)
        return header + self.read(max(0, int.from_bytes(header, "big", signed=True)))

    def ask(self, request: AnyRequest | bytes) -> bytes:
        """Send a request and return its answer."""
        self.send(request)
        return self.frame()

    def fetch(self, topic: str, offset: int = 0, *, partition: int = 0, max_size: int = 1_000_000) -> bytes:
        """The message set that a fetch returns; the fetch must succeed."""
        answer = self.ask(FetchRequest07(topic, partition, offset, max_size))
        assert answer[4:6] == b"\x00\x00"
        return answer[6:]

    def offsets(self, topic: str, time: int, *, max_offsets: int = 100) -> list[int]:
        """The offsets that OFFSETS returns for partition 0."""
        request = OffsetsRequest07(topic, 0, time, max_offsets)
        return list(request.decode_answer(memoryview(self.ask(request))[4:]).offsets)

    def produce(self, topic: str, *messages: bytes, partition: int = 0) -> None:
        """Publish, and wait until the broker has served the request: the next answer proves it."""
        self.send(ProduceRequest07(topic, partition, b"".join(messages)))
        assert self.state() == "open"

    def state(self) -> str:
        """The state of the connection: "open", "closed" by the broker, or "unusable" after an invalid frame."""
        try:
            answer = self.ask(FetchRequest07("", 0, 0, 0))
        except (ConnectionResetError, BrokenPipeError):
            return "closed"
        return {ILLEGAL_TOPIC: "open", b"": "closed"}.get(answer, "unusable")

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
