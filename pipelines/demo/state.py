"""The state of the demo: settings, Dagster instance, servers and lake, in one folder that git ignores."""

import json
import re
import shutil
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

CLUSTER = "demo"
_DEMO_TOPICS = ["flights", "weather", "numbers"]
_SETTINGS = """\
# Written by `make demo`. Use it with every command: penstock --settings {file} ...
lake = "lake"
start = "earliest"

[clusters.{cluster}]
{address}

[registries.{cluster}]
url = "http://127.0.0.1:{registry_port}"

[topics]
allow = {allow}

# A topic with a format gets a table with a column for each field of its values; others get keys and values as bytes.
[topics.flights]
format = "avro"

[topics.weather]
format = "json"
columns = {{ {weather} }}

[caps]
# The size of a task. A load of one task would run without Spark, so these values are small to show Spark at work.
slice_bytes = 1_048_576
slice_records = 50_000

[spark]
master = "local[2,4]"
"""
_WEATHER = {
    "origin": "string",
    **dict.fromkeys(("year", "month", "day", "hour"), "long"),
    **dict.fromkeys(("temp", "dewp", "humid"), "double"),
    "wind_dir": "long",
    **dict.fromkeys(("wind_speed", "wind_gust", "precip", "pressure", "visib"), "double"),
    "time_hour": "timestamp",
}
_DAGSTER = Path(__file__).with_name("dagster.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoState:
    """The folder of the demo."""

    home: Path

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.home / "penstock.toml"

    @property
    def dagster_home(self) -> Path:
        """The folder of the Dagster instance: runs, partitions, ticks."""
        return self.home / "dagster"

    @property
    def logs(self) -> Path:
        """The folder with the output of the servers and of Dagster."""
        return self.home / "logs"

    @property
    def has_kafka(self) -> bool:
        """Whether the demo runs its own Kafka cluster."""
        return (self.home / "zookeeper").exists()

    @property
    def zookeeper_port(self) -> int:
        """The port of the demo's own ZooKeeper, from the settings."""
        return self._port_after('zookeeper = "')

    @property
    def registry_port(self) -> int:
        """The port of the demo's schema registry, from the settings."""
        return self._port_after('url = "http://')

    def _port_after(self, begin: str) -> int:
        match = re.search(rf"{begin}127\.0\.0\.1:(\d+)\"", self.settings.read_text())
        assert match is not None, f"{self.settings} has another address than the demo wrote: {begin}127.0.0.1:..."
        return int(match[1])

    def begin(self, *, zookeeper: str | None = None, bootstrap: str | None = None) -> None:
        """Delete the state of an earlier demo and create a new one.

        With `zookeeper` or `bootstrap` the demo uses that running Kafka cluster, and there only its own topics.
        """
        if self.home.exists():
            shutil.rmtree(self.home)
        self.dagster_home.mkdir(parents=True)
        self.logs.mkdir()
        shutil.copy(_DAGSTER, self.dagster_home)
        allow: str | list[str] = _DEMO_TOPICS
        registry_port, zookeeper_port = free_ports(2)
        if not (zookeeper or bootstrap):
            (self.home / "zookeeper").mkdir()
            zookeeper, allow = f"127.0.0.1:{zookeeper_port}", ".*"
        text = _SETTINGS.format(
            file=json.dumps(str(self.settings)),
            cluster=CLUSTER,
            address=f'zookeeper = "{zookeeper}"' if zookeeper else f'bootstrap = "{bootstrap}"',
            registry_port=registry_port,
            allow=json.dumps(allow),
            weather=", ".join(f'{name} = "{type_}"' for name, type_ in _WEATHER.items()),
        )
        self.settings.write_text(text)


def free_port(*, preferred: int = 0) -> int:
    """A free port on loopback: `preferred` if it is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(count: int) -> list[int]:
    """`count` different free ports on loopback."""
    with ExitStack() as opened:
        probes = [opened.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
