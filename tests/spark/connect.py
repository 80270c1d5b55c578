"""A Spark Connect server, as operators start one. Its driver and workers do not have our code."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.spark.daemons import await_log, daemon

_HOST = "127.0.0.1"
_SERVER = ("spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
_SETTINGS = {
    "spark.connect.grpc.binding.address": _HOST,
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": _HOST,
    "spark.ui.port": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectServer:
    """The addresses of a Connect server and of its UI."""

    url: str
    ui: str


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str]) -> Iterator[ConnectServer]:
    """Run a server in `folder` with these Spark settings for the length of a `with` block."""
    arguments = [part for key, value in {**_SETTINGS, **settings}.items() for part in ("--conf", f"{key}={value}")]
    with daemon((*_SERVER, *arguments, "spark-internal"), folder, host=_HOST, memory="1g"):
        ui = await_log(folder, r"started service 'SparkUI' on port ([0-9]+)")
        port = await_log(folder, r"Spark Connect server started at: \S+:([0-9]+)")
        yield ConnectServer(url=f"sc://{_HOST}:{port}", ui=f"http://{_HOST}:{ui}")
