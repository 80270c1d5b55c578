"""An object store with S3's interface, in memory. It can ignore `If-None-Match`, or be unavailable for some writes.

It answers only clients with its access key.

It is a process of its own, because deltalake's file system holds Python's lock while it waits for an answer.
"""

import hashlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET

BUCKET = "bucket"
ACCESS_KEY = "key"
_CREDENTIAL = f"Credential={ACCESS_KEY}/"
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_TIME, _HTTP_TIME = "2026-01-01T00:00:00.000Z", "Thu, 01 Jan 2026 00:00:00 GMT"
_CONTROL = "/-/"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A running store, as its clients see it."""

    port: int

    @property
    def root(self) -> str:
        """The URI of a lake in this store."""
        return f"s3://{BUCKET}/lake"

    @property
    def options(self) -> dict[str, str]:
        """The options of the lake."""
        return {
            "aws_endpoint_url": f"http://127.0.0.1:{self.port}",
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": "secret",
            "timeout": "10s",
        }

    @property
    def objects(self) -> list[str]:
        """The keys of all objects."""
        return list(self._ask("objects"))

    @property
    def requests(self) -> list[list[str]]:
        """Method and key of each request so far. The method of a listing is LIST, and its key is the prefix."""
        return list(self._ask("requests"))

    def put(self, key: str, content: bytes) -> None:
        """Write an object with one request."""
        url, headers = f"http://127.0.0.1:{self.port}/{BUCKET}/{key}", {"Authorization": _CREDENTIAL}
        request = urllib.request.Request(url, content, headers, method="PUT")
        urllib.request.urlopen(request, timeout=10).close()

    def delete(self, key: str) -> None:
        """Delete an object."""
        url, headers = f"http://127.0.0.1:{self.port}/{BUCKET}/{key}", {"Authorization": _CREDENTIAL}
        urllib.request.urlopen(urllib.request.Request(url, headers=headers, method="DELETE"), timeout=10).close()

    def answer(self, status: int, times: int, text: str) -> None:
        """Let the next requests whose method and key contain the text fail with this status, so many times."""
        self._ask(f"answer?status={status}&times={times}&text={text}")

    def slow_down(self, seconds: float) -> None:
        """Let each answer wait so long."""
        self._ask(f"slow?seconds={seconds}")

    def _ask(self, question: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{_CONTROL}{question}", timeout=10) as answer:
            return json.load(answer)


@contextmanager
def object_store(*, put_if_absent: bool = True) -> Iterator[ObjectStore]:
    """A running store. Without `put_if_absent` it replaces objects whatever `If-None-Match` says."""
    command = [sys.executable, "-S", __file__, str(int(put_if_absent))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield ObjectStore(int(process.stdout.readline()))
        finally:
            process.kill()


@dataclass(slots=True, kw_only=True)
class _Store:
    """The objects by key, the requests so far, and the failures to come: status, number, and text of the request."""

    put_if_absent: bool
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    upload_ids: Iterator[int] = field(default_factory=count)
    failure: tuple[int, int, str] = (0, 0, "")
    wait_s: float = 0.0
    lock: Any = field(default_factory=Lock)

    def control(self, question: str) -> object:
        """The answer to a question of the test."""
        url = urlsplit(question)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if url.path == "slow":
            self.wait_s = float(query["seconds"])
            return None
        if url.path == "answer":
            self.failure = int(query["status"]), int(query["times"]), query["text"]
            return None
        return {"objects": sorted(self.objects), "requests": self.requests}[url.path]

    def failing(self, method: str, key: str) -> int | None:
        """The status with which this request fails; None if it does not fail."""
        status, times, text = self.failure
        if not times or text not in f"{method} {key}":
            return None
        self.failure = status, times - 1, text
        return status

    def put(self, key: str, body: bytes, *, if_absent: bool) -> int:
        """Write an object; returns the status."""
        with self.lock:
            if if_absent and self.put_if_absent and key in self.objects:
                return 412
            self.objects[key] = body
            return 200

    def listing(self, prefix: str, start_after: str, delimiter: str) -> bytes:
        """The answer to ListObjectsV2."""
        folders, contents = set(), []
        for key in sorted(key for key in [*self.objects] if key.startswith(prefix) and key > start_after):
            head, slash, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if slash:
                folders.add(f"{prefix}{head}/")
                continue
            size = len(self.objects[key])
            contents.append(
                f"<Contents><Key>{key}</Key><LastModified>{_TIME}</LastModified><ETag>{_e_tag(self.objects[key])}</ETag>"
                f"<Size>{size}</Size></Contents>"
            )
        prefixes = "".join(f"<CommonPrefixes><Prefix>{path}</Prefix></CommonPrefixes>" for path in sorted(folders))
        return (
            f'<ListBucketResult xmlns="{_NAMESPACE}"><IsTruncated>false</IsTruncated>'
            f"{''.join(contents)}{prefixes}</ListBucketResult>"
        ).encode()


class _Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    store: _Store
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer waits 40 ms for the client

    def _handle(self) -> None:
        if self.path.startswith(_CONTROL):
            self._answer(200, json.dumps(self.store.control(self.path.removeprefix(_CONTROL))).encode())
            return
        url = urlsplit(self.path)
        key = unquote(url.path).removeprefix(f"/{BUCKET}").lstrip("/")
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(self.store.wait_s)
        self.store.requests.append(("LIST", query["prefix"]) if "list-type" in query else (self.command, key))
        if _CREDENTIAL not in self.headers.get("Authorization", ""):
            self._answer(403, b"<Error><Code>InvalidAccessKeyId</Code></Error>")
            return
        status = self.store.failing(self.command, key)
        if status is not None:
            self._answer(status, b"<Error><Code>Injected</Code></Error>")
        else:
            getattr(self, f"_{self.command.lower()}")(key, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - names of http.server

    def _get(self, key: str, query: dict[str, str], _body: bytes) -> None:
        if "list-type" in query:
            names = ("prefix", "start-after", "delimiter")
            self._answer(200, self.store.listing(*(query.get(name, "") for name in names)))
            return
        content = self.store.objects.get(key)
        if content is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        wanted = self.headers.get("Range")
        mark = {"ETag": _e_tag(content)}
        if wanted is None:
            self._answer(200, content)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(content) - int(last)
        if start >= len(content):
            self._answer(416, b"<Error><Code>InvalidRange</Code></Error>")
            return
        stop = min(int(last) + 1, len(content)) if first and last else len(content)
        self._answer(206, content[start:stop], mark | {"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"})

    _head = _get

    def _put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.store.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._answer(200)
            return
        status = self.store.put(key, body, if_absent=self.headers.get("If-None-Match") == "*")
        self._answer(status, headers={"ETag": _e_tag(body)})

    def _post(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "delete" in query:
            keys = [str(element.text) for element in ET.fromstring(body).iter() if element.tag.endswith("Key")]
            for name in keys:
                self.store.objects.pop(name, None)
            deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in keys)
            self._answer(200, f'<DeleteResult xmlns="{_NAMESPACE}">{deleted}</DeleteResult>'.encode())
        elif "uploads" in query:
            upload = str(next(self.store.upload_ids))
            self.store.uploads[upload] = {}
            self._answer(200, _result("InitiateMultipartUploadResult", "UploadId", upload))
        else:
            parts = self.store.uploads.pop(query["uploadId"])
            self.store.put(key, b"".join(parts[number] for number in sorted(parts)), if_absent=False)
            self._answer(200, _result("CompleteMultipartUploadResult", "ETag", "1"))

    def _delete(self, key: str, _query: dict[str, str], _body: bytes) -> None:
        self.store.objects.pop(key, None)
        self._answer(204)

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        fixed = {"Content-Length": str(len(body)), "ETag": _e_tag(body), "Last-Modified": _HTTP_TIME}
        for name, value in (fixed | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _e_tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def _result(kind: str, name: str, value: str) -> bytes:
    return f'<{kind} xmlns="{_NAMESPACE}"><{name}>{value}</{name}></{kind}>'.encode()


def _serve() -> None:
    """Serve until the process is killed; prints the port."""
    _Handler.store = _Store(put_if_absent=sys.argv[1] == "1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _serve()
