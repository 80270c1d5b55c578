"""A real Prometheus server for one test, and `promtool`.

If they are not on the PATH, apt downloads the package of Debian once into the user's cache. It is not installed,
because its installation would start a server.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from kafka_io.closing import Closing, closed_on_error
from resources.java import cache_dir
from resources.processes import dying_with_parent, end
from tests.brokers.ports import HOST, free_ports
from tests.tools import as_root

_START_S = 60.0
_POLL_S = 0.1
_CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: penstock
    scrape_timeout: 1s
    static_configs:
      - targets: ["{target}"]
"""


class PrometheusMissing(RuntimeError):
    """The programs are not on the PATH, and could not be downloaded."""


@cache
def program(name: str) -> str:
    """The path of `prometheus` or `promtool`.

    Raises:
        PrometheusMissing: it is not on the PATH, and could not be downloaded.
    """
    on_path = shutil.which(name)
    if on_path:
        return on_path
    folder = cache_dir() / "prometheus"
    if not folder.is_dir():
        _download(folder)
    return str(folder / "usr" / "bin" / name)


def _download(folder: Path) -> None:
    """Unpack the package of Debian into a folder."""
    if shutil.which("apt-get") is None:
        raise PrometheusMissing("put `prometheus` and `promtool` on the PATH: there is no apt-get to download them")
    with tempfile.TemporaryDirectory(dir=cache_dir()) as temporary:
        download = ["apt-get", "download", "-qq", "prometheus"]
        if _run(download, temporary).returncode != 0:
            _run([*as_root(), "apt-get", "update", "-qq"], temporary)
            completed = _run(download, temporary)
            if completed.returncode != 0:
                raise PrometheusMissing(f"`{' '.join(download)}` failed here:\n{completed.stderr}")
        [package] = Path(temporary).glob("*.deb")
        unpacked = Path(temporary) / "unpacked"
        _run(["dpkg-deb", "-x", package.name, unpacked.name], temporary)
        try:
            unpacked.rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise


def _run(command: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


class PrometheusServer(Closing):
    """A server on a free port of loopback that scrapes `target` each second. A context manager."""

    def __init__(self, target: str, rules: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-prometheus-"))
        self._config = _CONFIG.format(target=target, rules=rules)
        (self._port,) = free_ports(1)
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start the server."""
        with closed_on_error(self):
            (self.folder / "prometheus.yml").write_text(self._config)
            with (self.folder / "log").open("wb") as log:
                self._server = subprocess.Popen(
                    [
                        program("prometheus"),
                        f"--config.file={self.folder / 'prometheus.yml'}",
                        f"--storage.tsdb.path={self.folder / 'data'}",
                        f"--web.listen-address={HOST}:{self._port}",
                    ],
                    env={"PATH": os.defpath},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
                )
        return self

    def close(self) -> None:
        """Stop the server and delete its folder."""
        if self._server is not None:
            end(self._server)
            self._server = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of the server's API."""
        with urlopen(f"http://{HOST}:{self._port}/api/v1/{path}?{urlencode(parameters)}", timeout=30) as answer:
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
        raise TimeoutError(f"{query} has no result. {(self.folder / 'log').read_text()[-2000:]}")
