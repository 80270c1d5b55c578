"""What the broker's tests say and hear: messages made by hand, requests over a bare socket, golden records."""

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
    """The records of one capture."""
    records: list[dict[str, Any]] = json.loads((GOLDEN / "wire" / f"{name}.json").read_text())
    return records


def message(payload: bytes, *, magic: int = 1, attributes: int = 0) -> bytes:
    """One message, its CRC right."""
    header = bytes((magic, attributes)) if magic else b"\x00"
    body = header + struct.pack(">I", zlib.crc32(payload)) + payload
    return struct.pack(">i", len(body)) + body


def numbered(count: int, *, first: int = 0) -> list[bytes]:
    """Messages of 20 bytes each, no two alike."""
    return [message(f"message-{number:02d}".encode()) for number in range(first, first + count)]


class Client:
    """A socket that knows frames and nothing else."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: AnyRequest | bytes) -> None:
        """Put a request, or any bytes, on the wire."""
        self.socket.sendall(request if isinstance(request, bytes) else request.encode())

    def read(self, count: int) -> bytes:
        """`count` bytes, fewer when the broker closes before."""
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionResetError:  # closed while bytes of ours were still unread: the same to a client
                break
            if not more:
                break
            data += more
        return data

    def frame(self) -> bytes:
        """The next answer with its size; empty when the broker closes."""
        header = self.read(4)
        return header + self.read(max(0, int.from_bytes(header, "big", signed=True)))

    def ask(self, request: AnyRequest | bytes) -> bytes:
        """Send, and the answer."""
        self.send(request)
        return self.frame()

    def fetch(self, topic: str, offset: int = 0, *, partition: int = 0, max_size: int = 1_000_000) -> bytes:
        """The message set a fetch gives, which must succeed."""
        answer = self.ask(FetchRequest07(topic, partition, offset, max_size))
        assert answer[4:6] == b"\x00\x00"
        return answer[6:]

    def offsets(self, topic: str, time: int, *, max_offsets: int = 100) -> list[int]:
        """What OFFSETS gives for partition 0."""
        request = OffsetsRequest07(topic, 0, time, max_offsets)
        return list(request.decode_answer(memoryview(self.ask(request))[4:]).offsets)

    def produce(self, topic: str, *messages: bytes, partition: int = 0) -> None:
        """Publish, and wait until the broker has served it: it answers requests in their order."""
        self.send(ProduceRequest07(topic, partition, b"".join(messages)))
        assert self.state() == "open"

    def state(self) -> str:
        """What the connection is good for: "open", "closed" by the broker, or "unusable" after a broken frame."""
        try:
            answer = self.ask(FetchRequest07("", 0, 0, 0))
        except (ConnectionResetError, BrokenPipeError):
            return "closed"
        return {ILLEGAL_TOPIC: "open", b"": "closed"}.get(answer, "unusable")

    def close(self) -> None:
        """Leave."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
