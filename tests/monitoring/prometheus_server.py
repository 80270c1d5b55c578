"""Real servers of Prometheus for one test: the server itself, `promtool`, and a Pushgateway."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from kafka_io.closing import Closing, closed_on_error
from resources.machines.processes import dying_with_parent, end
from tests.brokers.ports import HOST, free_ports
from tests.monitoring.debian_programs import program

_START_S = 60.0
_POLL_S = 0.1
_CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: penstock
    scrape_timeout: 1s
    honor_labels: true
    static_configs:
      - targets: {targets}
"""


def promtool() -> str:
    """The path of `promtool`."""
    return program("promtool", "prometheus")


class _Server(Closing):
    """A process with a folder of its own, on a free port of loopback. A context manager."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-prometheus-"))
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> str:
        """The address of the server, as Prometheus scrapes it."""
        return f"{HOST}:{self.port}"

    def command(self) -> Sequence[str]:
        """The command that starts the server."""
        raise NotImplementedError

    def start(self) -> Self:
        """Start the server."""
        with closed_on_error(self), (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self.command(),
                env={"PATH": os.defpath},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
            )
        return self

    def close(self) -> None:
        """Stop the server and delete its folder."""
        if self._process is not None:
            end(self._process)
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """The end of what the server has printed."""
        return (self.folder / "log").read_text()[-2000:]


class PrometheusServer(_Server):
    """A server that scrapes `targets` each second."""

    def __init__(self, rules: Path, *targets: str) -> None:
        super().__init__()
        self._config = _CONFIG.format(targets=json.dumps(targets), rules=rules)

    def command(self) -> Sequence[str]:
        """See _Server."""
        (self.folder / "prometheus.yml").write_text(self._config)
        return [
            program("prometheus", "prometheus"),
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={self.target}",
        ]

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of the server's API."""
        with urlopen(f"http://{self.target}/api/v1/{path}?{urlencode(parameters)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def wait_for(self, query: str) -> list[dict[str, Any]]:
        """The result of a query, as soon as it has one."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                result: list[dict[str, Any]] = self.ask("query", query=query)["result"]
            except URLError:  # it does not listen yet, or reads its data
                result = []
            if result:
                return result
            time.sleep(_POLL_S)
        raise TimeoutError(f"{query} has no result. {self.log()}")


class Pushgateway(_Server):
    """A Pushgateway."""

    def command(self) -> Sequence[str]:
        """See _Server."""
        name = "prometheus-pushgateway"
        return [program(name, name), f"--web.listen-address={self.target}"]

    @property
    def url(self) -> str:
        """The URL to push to."""
        return f"http://{self.target}"

    def start(self) -> Self:
        """Start the server, and wait until it answers."""
        super().start()
        with closed_on_error(self):
            deadline = time.monotonic() + _START_S
            while True:
                try:
                    self.page()
                except URLError:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"the Pushgateway does not answer. {self.log()}") from None
                    time.sleep(_POLL_S)
                else:
                    return self

    def page(self) -> str:
        """What Prometheus scrapes."""
        with urlopen(f"{self.url}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def delete(self, path: str) -> int:
        """Delete a group; returns the status of the answer."""
        with urlopen(Request(f"{self.url}{path}", method="DELETE"), timeout=30) as answer:
            return int(answer.status)
