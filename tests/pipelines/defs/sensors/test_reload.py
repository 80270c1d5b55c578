"""What the sensor does so that Dagster loads new assets. The UI tests use real servers; faults are injected here."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from dagster._core.errors import DagsterUserCodeUnreachableError

from pipelines.defs.sensors.reload import Reload, reload_definitions


class Client:
    """A client of a code server."""

    def __init__(self, ids: list[str], error: Exception | None = None) -> None:
        self.ids = ids
        self.error = error

    def get_server_id(self) -> str:
        """The id of the server, which changes when it reloads."""
        return self.ids.pop(0)

    def reload_code(self, timeout: int) -> None:
        """Reload, or fail."""
        assert timeout < 60  # Dagster stops a tick after 60 s
        if self.error:
            raise self.error


def reload_with(**origin: Any) -> Reload:
    """Reload with the origin of a code location."""
    return reload_definitions(SimpleNamespace(code_location_origin=SimpleNamespace(**origin)), origin["webserver"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("client", "done", "sentence"),
    [
        (Client(["1", "2"]), True, "the code server has loaded the new assets"),
        (Client(["1", "1"]), False, "restart the code server"),
        (Client(["1"], DagsterUserCodeUnreachableError("slow")), False, "a later tick requests the runs"),
    ],
    ids=["code-server start", "api grpc", "too slow"],
)
def test_a_code_server_is_reloaded(client: Client, done: bool, sentence: str) -> None:
    result = reload_with(create_client=lambda: client, webserver="")
    assert result.done is done
    assert sentence in result.sentence


@contextmanager
def webserver(answer: bytes) -> Iterator[tuple[str, list[Any]]]:
    """A server that gives one answer to every POST; yields its address and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        """Answers a POST."""

        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is given
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            b'{"data": {"reloadRepositoryLocation": {"__typename": "WorkspaceLocationEntry"}}}',
            "the webserver shows them",
        ),
        (
            b'{"data": {"reloadRepositoryLocation": {"message": "no such location"}}}',
            "the webserver could not load them: no such location",
        ),
        (b"<html>", "could not be asked to show them (JSONDecodeError)"),
    ],
)
def test_a_webserver_is_asked_for_a_location_that_it_manages(answer: bytes, sentence: str) -> None:
    with webserver(answer) as (address, asked):
        result = reload_with(location_name="penstock", webserver=address)
    assert not result.done
    assert sentence in result.sentence
    assert [body["variables"] for body in asked] == [{"name": "penstock"}]


def test_a_webserver_may_take_longer_than_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.defs.sensors.reload._RELOAD_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        result = reload_with(location_name="penstock", webserver=address)
    assert "has not loaded them within 0.1 s; it may show them later" in result.sentence


def test_a_webserver_that_does_not_answer_is_no_error() -> None:
    result = reload_with(location_name="penstock", webserver="http://127.0.0.1:9")
    assert "could not be asked to show them" in result.sentence
    assert "reload the code location in the UI" in reload_with(location_name="penstock", webserver="").sentence
