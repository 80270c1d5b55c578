"""The state of the demo: settings, Dagster instance, servers and lake, in one folder that git ignores."""

import json
import re
import shutil
import socket
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

[topics]
allow = {allow}

[caps]
# The size of a task. A load of one task would run without Spark, so these values are small to show Spark at work.
slice_bytes = 1_048_576
slice_records = 50_000

[spark]
master = "local[2,4]"
"""
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
    def has_servers(self) -> bool:
        """Whether the demo runs its own Kafka cluster."""
        return (self.home / "zookeeper").exists()

    @property
    def zookeeper_port(self) -> int:
        """The port of the demo's own ZooKeeper, from the settings."""
        match = re.search(r'zookeeper = "127\.0\.0\.1:(\d+)"', self.settings.read_text())
        assert match is not None, f"{self.settings} has another ZooKeeper address than the demo wrote"
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
        if not (zookeeper or bootstrap):
            (self.home / "zookeeper").mkdir()
            zookeeper, allow = f"127.0.0.1:{free_port()}", ".*"
        address = f'zookeeper = "{zookeeper}"' if zookeeper else f'bootstrap = "{bootstrap}"'
        file = json.dumps(str(self.settings))
        self.settings.write_text(_SETTINGS.format(file=file, cluster=CLUSTER, address=address, allow=json.dumps(allow)))


def free_port(*, preferred: int = 0) -> int:
    """A free port on loopback: `preferred` if it is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
