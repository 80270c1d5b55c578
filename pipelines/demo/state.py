"""The state of the demo: settings, Dagster instance, servers and lake, in one folder that git ignores."""

import json
import shutil
import socket
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template

CLUSTER, MODERN = "demo", "modern"
"""The clusters: one of Kafka 0.7, or a running one instead; and one whose records have timestamps."""
DAYS = 3
"""The days of the topic `departures`. The last one is yesterday."""
_DEMO_TOPICS = ["flights", "weather", "numbers"]
_FIRST_HOUR = "10:00"
"""The hour, in UTC, of the first flights of the year."""
_DAGSTER = Path(__file__).with_name("dagster.yaml")
_SETTINGS = Path(__file__).with_name("settings.toml.template")


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
        text = Template(_SETTINGS.read_text()).substitute(
            file=json.dumps(str(self.settings)),
            cluster=CLUSTER,
            address=f'zookeeper = "{zookeeper}"' if zookeeper else f'bootstrap = "{bootstrap}"',
            allow=json.dumps(allow),
            modern=MODERN,
            broker_port=broker_port,
            registry_port=registry_port,
            first_hour=f"{datetime.now(UTC).date() - timedelta(days=DAYS)}T{_FIRST_HOUR}",
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
