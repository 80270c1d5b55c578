"""Pages of metrics are replaced in one step, and a Pushgateway that does not take them is an error with a reason."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import ValidationError

from resources.errors import MetricsNotWritten
from resources.metrics_output import MetricName, MetricsPage
from resources.settings.metrics import MetricsSettings, check_push_url
from tests.brokers.ports import free_ports

LAG = MetricName(name="lag", meaning="Lag.")
ODD = 'a"b\\c\nd'
PAGE = MetricsPage([LAG.family([(("main", ODD), 7)]), LAG.family([])])


@dataclass
class Gateway:
    """What a server received, and the status with which it answers."""

    status: int = 200
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    received = Gateway()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.requests.append((self.command, self.path, body))
            self.send_response(received.status)
            self.end_headers()

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its name in the base class
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield received
        server.shutdown()
        thread.join()


def push(url: str) -> None:
    PAGE.push(url, job="penstock", grouping={"cluster": "main", "topic": "a/b"}, timeout_s=0.3)


def test_a_page_has_each_metric_once_with_escaped_labels() -> None:
    assert PAGE.text() == (
        "# HELP lag Lag.\n# TYPE lag gauge\n" + 'lag{cluster="main",topic="a\\"b\\\\c\\nd"} 7.0\n'  # as the format says
    )


def test_a_file_is_replaced_and_nothing_else_stays_in_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "penstock.prom"
    for _ in range(2):
        PAGE.write(file)
    assert (file.read_text(), list(tmp_path.iterdir())) == (PAGE.text(), [file])
    with pytest.raises(MetricsNotWritten, match="no such file or directory"):
        PAGE.write(tmp_path / "missing" / "penstock.prom")


def test_a_page_replaces_the_group_of_its_topic(gateway: Gateway) -> None:
    push(gateway.url)
    [(method, path, body)] = gateway.requests
    assert (method, body.decode()) == ("PUT", PAGE.text())
    assert path == "/metrics/job/penstock/cluster/main/topic@base64/YS9i"


def test_a_gateway_that_refuses_is_an_error(gateway: Gateway) -> None:
    gateway.status = 400
    with pytest.raises(MetricsNotWritten, match="it answers with status 400"):
        push(gateway.url)


def test_a_gateway_that_does_not_answer_is_an_error() -> None:
    (port,) = free_ports(1)
    with pytest.raises(MetricsNotWritten, match="connection refused"):
        push(f"http://127.0.0.1:{port}")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(MetricsNotWritten, match="no answer in time"):
        push(f"http://127.0.0.1:{silent.getsockname()[1]}")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("other:9091", "must be a URL such as"),
        ("ftp://gateway", "must be a URL such as"),
        ("http://gateway:port", "is not a URL"),
        ("http://me:secret@gateway", "must not contain a user or a password"),  # fault X01
        ("http://gateway/?a=b", "must not contain"),
    ],
)
def test_a_push_url_is_checked(url: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason) as error:
        MetricsSettings(push_url=url)
    assert url not in str(error.value)
    assert check_push_url("https://gateway/prefix") == "https://gateway/prefix"
