"""The replies of an embedded registry: a status, headers and JSON, or an error with Confluent's code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

import msgspec

_JSON = "application/vnd.schemaregistry.v1+json"


class Refused(Exception):
    """A request that the registry answers with an error: its arguments are those of `RegistryReply.of_error`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryReply:
    """A reply to one request."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any) -> Self:
        """A reply with this value as JSON."""
        return cls(body=msgspec.json.encode(value))

    @classmethod
    def of_error(cls, status: int, code: int, message: str) -> Self:
        """A reply with an error."""
        return cls(status=status, body=msgspec.json.encode({"error_code": code, "message": message}))

    def encode(self) -> bytes:
        """The bytes of the reply. The connection is closed after it."""
        headers = {
            "Content-Type": _JSON,
            "Content-Length": str(len(self.body)),
            "Connection": "close",
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", *map(": ".join, headers.items()), "", ""]
        return "\r\n".join(lines).encode() + self.body
