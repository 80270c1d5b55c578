"""A proxy in front of a store. It can refuse requests, lose and delay answers, and hide new objects from listings.

It is a process of its own, because deltalake's file system holds Python's lock while it waits for an answer.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET

_CONTROL = "/-/"
_S3 = "http://s3.amazonaws.com/doc/2006-03-01/"
_OF_CONNECTION = {"connection", "content-length", "transfer-encoding", "keep-alive"}
FaultKind = Literal["refuse", "lose", "delay"]


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to the next requests whose method and path contain the text.

    Args:
        kind: `refuse` answers with `status`, and the store does not get the request. `lose` closes the connection after
            the store has done what was requested. `delay` waits for `seconds` before the answer is sent.
        method: the method of the requests; empty for each.
        text: a part of the path with its query.
        times: the number of requests.
        status: the status of `refuse`.
        seconds: the wait of `delay`.
    """

    kind: FaultKind
    method: str = ""
    text: str = ""
    times: int = 1
    status: int = 503
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FaultProxy:
    """A running proxy, as tests see it."""

    port: int

    @property
    def requests(self) -> list[str]:
        """Method and path with query of each request so far."""
        return list(self._ask({}))

    def inject(self, *faults: Fault) -> None:
        """Replace the faults. The first that matches a request happens."""
        self._ask({"faults": [asdict(fault) for fault in faults]})

    def hide_new_objects(self, seconds: float) -> None:
        """Let listings lack the objects that were written less than this ago."""
        self._ask({"hide_s": seconds})

    def _ask(self, question: dict[str, Any]) -> Any:
        url = f"http://127.0.0.1:{self.port}{_CONTROL}"
        with urllib.request.urlopen(url, json.dumps(question).encode(), timeout=10) as answer:
            return json.load(answer)


@contextmanager
def fault_proxy(port: int) -> Iterator[FaultProxy]:
    """A proxy in front of the store at this port."""
    command = [sys.executable, "-S", __file__, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield FaultProxy(int(process.stdout.readline()))
        finally:
            process.kill()


class _State:
    """The faults to come, the requests so far, and when each object was written."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.written: dict[str, float] = {}
        self.hide_s = 0.0

    def control(self, question: dict[str, Any]) -> Sequence[str]:
        """Take the settings of a test; returns the requests so far."""
        with self.lock:
            if "faults" in question:
                self.faults = [Fault(**fault) for fault in question["faults"]]
            self.hide_s = question.get("hide_s", self.hide_s)
            return list(self.requests)

    def fault(self, method: str, path: str) -> Fault | None:
        """The fault that happens to this request."""
        with self.lock:
            self.requests.append(f"{method} {path}")
            for fault in self.faults:
                if fault.times and fault.method in {"", method} and fault.text in path:
                    fault.times -= 1
                    return fault
        return None

    def hides(self, name: str) -> bool:
        """Whether listings lack this object, or this folder if all its objects are new."""
        since = time.monotonic() - self.hide_s
        if name.endswith("/"):
            times = [written for key, written in self.written.items() if key.startswith(name)]
            return bool(times) and min(times) > since
        return self.written.get(name, since) > since


class _Handler(BaseHTTPRequestHandler):
    """Passes requests on."""

    state: _State
    upstream: int
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer waits 40 ms for the client

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith(_CONTROL):
            self._answer(200, [], json.dumps(self.state.control(json.loads(body))).encode())
            return
        fault = self.state.fault(self.command, unquote(self.path))
        if fault and fault.kind == "refuse":
            self._answer(fault.status, [], b"<Error><Code>SlowDown</Code><Message>injected</Message></Error>")
            return
        answer, content = self._forward(body)
        if fault and fault.kind == "lose":
            self.close_connection = True
            return
        if fault:
            time.sleep(fault.seconds)
        self._answer(answer.status, answer.getheaders(), content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - names of http.server

    def _forward(self, body: bytes) -> tuple[HTTPResponse, bytes]:
        """The store's answer."""
        connection = HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        try:
            # The signature of a request covers the header Host, so it stays as it is.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if self.command in {"PUT", "POST"} and answer.status < 300:
            self.state.written[_key(url.path)] = time.monotonic()
        if "list-type" in query or query.get("comp") == "list":
            content = _filtered(content, self.state, query.get("startFrom", ""))
        return answer, content

    def _answer(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() not in _OF_CONNECTION:
                self.send_header(name, value)
            elif name.lower() == "content-length" and self.command == "HEAD":
                length = value
        if status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _key(path: str) -> str:
    """The name of the object in its bucket or container."""
    return unquote(path).partition("/bucket/")[2]


def _filtered(content: bytes, state: _State, start_from: str) -> bytes:
    """The listing without what is hidden, and without what sorts before `start_from`.

    Azurite ignores `startFrom`, which Azure knows since its version 2025-11-05, and deltalake relies on it.
    """
    if not content.startswith(b"<") or not (state.hide_s or start_from):
        return content
    ET.register_namespace("", _S3)
    root = ET.fromstring(content)
    for parent in list(root.iter()):
        for item in list(parent):
            name = next((str(part.text) for part in item if part.tag.split("}")[-1] in {"Key", "Name"}), "")
            if item.tag.endswith("CommonPrefixes"):
                name = str(item[0].text)
            is_entry = item.tag.split("}")[-1] in {"Contents", "CommonPrefixes", "Blob", "BlobPrefix"}
            if is_entry and (name < start_from or state.hides(name)):
                parent.remove(item)
    return b'<?xml version="1.0" encoding="UTF-8"?>' + ET.tostring(root)


def _serve() -> None:
    """Serve until the process is killed; prints the port."""
    _Handler.state, _Handler.upstream = _State(), int(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _serve()
