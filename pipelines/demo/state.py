"""Where the demo keeps what it makes: all in one folder that git ignores."""

import json
import re
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

CLUSTER = "demo"
_TOPICS_THERE = ["flights", "weather", "numbers"]
_SETTINGS = """\
# Written by `make demo`. Every command takes it: penstock --settings {file} ...
lake = "lake"
start = "earliest"

[clusters.{cluster}]
{found}

[topics]
allow = {allow}

[caps]
# A task's share. No more than that would be fetched without Spark; these are small, so that it has something to spread.
slice_bytes = 1_048_576
slice_records = 50_000

[spark]
master = "local[2,4]"
"""
_DAGSTER = """\
telemetry:
  enabled: false
nux:
  enabled: false
run_coordinator:
  module: dagster.core.run_coordinator
  class: QueuedRunCoordinator
  config:
    # A code server that died is replaced within a minute. A run that is due meanwhile waits, and is not told as failed.
    max_user_code_failure_retries: 4
    user_code_failure_retry_delay: 20
concurrency:
  runs:
    # A large run is a JVM: one at a time on a small machine.
    max_concurrent_runs: 1
  pools:
    # How many runs read from one cluster at once. Those that are over it stay in the queue, without a process.
    default_limit: 2
    granularity: run
run_monitoring:
  # Runs whose process never begins are told as failed; our sensor lost_runs looks after those that have begun.
  enabled: true
  start_timeout_seconds: 180
sensors:
  # Each cluster has a sensor that waits a little for ZooKeeper.
  use_threads: true
  num_workers: 4
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The demo's folder and what is in it."""

    home: Path

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.home / "penstock.toml"

    @property
    def dagster_home(self) -> Path:
        """Dagster's instance: runs, partitions, ticks."""
        return self.home / "dagster"

    @property
    def logs(self) -> Path:
        """What servers and Dagster print."""
        return self.home / "logs"

    @property
    def has_servers(self) -> bool:
        """Whether its Kafka is the demo's own."""
        return self._zookeeper.exists()

    @property
    def _zookeeper(self) -> Path:
        return self.home / "zookeeper"

    @property
    def zookeeper_port(self) -> int:
        """The port that the settings name, of the demo's own server."""
        match = re.search(r'zookeeper = "127\.0\.0\.1:(\d+)"', self.settings.read_text())
        assert match is not None, f"{self.settings} was edited"
        return int(match[1])

    def begin(self, *, zookeeper: str | None = None, bootstrap: str | None = None) -> None:
        """A fresh state, in the place of what an earlier demo left.

        With one of the two its Kafka is one that runs already; only the demo's own topics are looked at there.
        """
        if self.home.exists():
            shutil.rmtree(self.home)
        self.dagster_home.mkdir(parents=True)
        self.logs.mkdir()
        (self.dagster_home / "dagster.yaml").write_text(_DAGSTER)
        place = {"file": json.dumps(str(self.settings)), "cluster": CLUSTER}
        if zookeeper or bootstrap:
            found = f'zookeeper = "{zookeeper}"' if zookeeper else f'bootstrap = "{bootstrap}"'
            text = _SETTINGS.format(**place, found=found, allow=json.dumps(_TOPICS_THERE))
        else:
            self._zookeeper.mkdir()
            text = _SETTINGS.format(**place, found=f'zookeeper = "127.0.0.1:{free_port()}"', allow='".*"')
        self.settings.write_text(text)


def free_port(*, preferred: int = 0) -> int:
    """A port on loopback that nobody listens on now: `preferred` if it is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
