"""The state of the demo: settings, Dagster instance, servers and lake, in one folder that git ignores."""

import json
import shutil
import socket
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

CLUSTER, MODERN = "demo", "modern"
"""The clusters: one of Kafka 0.7, or a running one instead; and one whose records have timestamps."""
DAYS = 3
"""The days of the topic `departures`. The last one is yesterday."""
_DEMO_TOPICS = ["flights", "weather", "numbers"]
_SETTINGS = """\
# Written by `make demo`. Use it with every command: penstock --settings {file} ...
lake = "lake"
start = "earliest"

[clusters.{cluster}]
{address}

[clusters.{cluster}.topics]
allow = {allow}

[clusters.{modern}]
bootstrap = "127.0.0.1:{broker_port}"

[registries.{cluster}]
url = "http://127.0.0.1:{registry_port}"

# A topic with a format gets a table with a column for each field of its values; others get keys and values as bytes.
[topics.flights]
format = "avro"

[topics.weather]
format = "json"
columns = {{ {weather} }}

# Complete hours of this topic are partitions in Dagster, and the newest row of each aircraft is in a second table.
[topics.departures]
format = "json"
columns = {{ {departures} }}
event_time = "time_hour"
allowed_lateness_minutes = 0     # records are in the log in the order of their event times
complete = "hourly"
complete_since = "{first_hour}"

[topics.departures.state]
key = "tailnum"
order = "time_hour"

[caps]
# The size of a task, and how many of them run without Spark: these values are small, to show Spark at work.
slice_bytes = 1_048_576
slice_records = 50_000
driver_slices = 1

[spark]
master = "local[2,4]"
"spark.sql.session.timeZone" = "UTC"
"spark.sql.shuffle.partitions" = "2"
"""
_WEATHER = {
    "origin": "string",
    **dict.fromkeys(("year", "month", "day", "hour"), "long"),
    **dict.fromkeys(("temp", "dewp", "humid"), "double"),
    "wind_dir": "long",
    **dict.fromkeys(("wind_speed", "wind_gust", "precip", "pressure", "visib"), "double"),
    "time_hour": "timestamp",
}
_DEPARTURES = {
    "time_hour": "timestamp",
    **dict.fromkeys(("carrier", "tailnum", "origin", "dest"), "string"),
    **dict.fromkeys(("flight", "dep_delay"), "long"),
}
_FIRST_HOUR = "10:00"
"""The hour, in UTC, of the first flights of the year."""
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
        return self._port("clusters", CLUSTER, "zookeeper")

    @property
    def broker_port(self) -> int:
        """The port of the demo's modern broker, from the settings."""
        return self._port("clusters", MODERN, "bootstrap")

    @property
    def registry_port(self) -> int:
        """The port of the demo's schema registry, from the settings."""
        return self._port("registries", CLUSTER, "url")

    def _port(self, *path: str) -> int:
        """The port at the end of the address that the settings have at this path."""
        value = tomllib.loads(self.settings.read_text())
        for name in path:
            value = value[name]
        address, _, port = str(value).rpartition(":")
        assert address.endswith("127.0.0.1"), f"{self.settings} has another address than the demo wrote: {value}"
        return int(port)

    def begin(self, *, zookeeper: str | None = None, bootstrap: str | None = None) -> None:
        """Delete the state of an earlier demo and create a new one.

        With `zookeeper` or `bootstrap` the demo uses that running Kafka cluster, and there only its own topics.
        """
        if self.home.exists():
            shutil.rmtree(self.home)
        self.dagster_home.mkdir(parents=True)
        self.logs.mkdir()
        shutil.copy(_DAGSTER, self.dagster_home)
        allow = _DEMO_TOPICS
        registry_port, zookeeper_port, broker_port = free_ports(3)
        if not (zookeeper or bootstrap):
            (self.home / "zookeeper").mkdir()
            zookeeper, allow = f"127.0.0.1:{zookeeper_port}", [".*"]
        text = _SETTINGS.format(
            file=json.dumps(str(self.settings)),
            cluster=CLUSTER,
            address=f'zookeeper = "{zookeeper}"' if zookeeper else f'bootstrap = "{bootstrap}"',
            allow=json.dumps(allow),
            modern=MODERN,
            broker_port=broker_port,
            registry_port=registry_port,
            weather=_columns(_WEATHER),
            departures=_columns(_DEPARTURES),
            first_hour=f"{datetime.now(UTC).date() - timedelta(days=DAYS)}T{_FIRST_HOUR}",
        )
        self.settings.write_text(text)


def _columns(types: Mapping[str, str]) -> str:
    return ", ".join(f'{name} = "{type_}"' for name, type_ in types.items())


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
