"""The migration of a cluster from ZooKeeper to KRaft, as Kafka describes it; 3.9 is the last version that can do it.

A KRaft controller copies the metadata from ZooKeeper and becomes the cluster's controller. The brokers still run in
ZooKeeper mode, and the controller writes every change to both places. Then the brokers restart in KRaft mode, and the
controller restarts without ZooKeeper (KIP-866).
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.brokers.kafka_process import KafkaProcess
from tests.brokers.kraft_mode import Quorum, format_storage
from tests.brokers.ports import HOST, free_ports
from tests.nodes import connected

_NODE_ID = 3000
_TIMEOUT_S = 60.0
_POLL_S = 0.1
_MIGRATED = "Completed migration of metadata from ZooKeeper to KRaft"


class Migration:
    """The KRaft controller of a cluster that ran with ZooKeeper. A context manager; it stops the controller."""

    def __init__(self, zookeeper: str, folder: Path) -> None:
        """The cluster has its nodes at `zookeeper`, as `host:port/chroot`. The controller's data is in `folder`."""
        [port] = free_ports(1)
        self._zookeeper = zookeeper
        self._folder = folder
        self._process: KafkaProcess | None = None
        self._listener = f"CONTROLLER://{HOST}:{port}"
        self.quorum = Quorum(cluster_id=_cluster_id(zookeeper), voter=f"{_NODE_ID}@{HOST}:{port}")

    @property
    def broker_config(self) -> Mapping[str, str]:
        """The further settings of a broker in ZooKeeper mode that takes part in the migration."""
        return {
            "zookeeper.metadata.migration.enable": "true",
            "controller.quorum.voters": self.quorum.voter,
            "controller.listener.names": "CONTROLLER",
        }

    def begin(self, version: str) -> None:
        """Start the controller, and wait until it has copied the metadata and is the cluster's controller.

        Raises:
            TimeoutError: it does not happen. The message has the end of the controller's log.
        """
        migration = {"zookeeper.metadata.migration.enable": "true", "zookeeper.connect": self._zookeeper}
        process = self._start(version, migration)
        deadline = time.monotonic() + _TIMEOUT_S
        while _MIGRATED not in process.log.read_text(errors="replace"):
            if not process.runs or time.monotonic() > deadline:
                raise TimeoutError(f"the metadata was not migrated. {process.log_end()}")
            time.sleep(_POLL_S)

    def finish(self, version: str) -> None:
        """Start the controller again, without ZooKeeper."""
        self._start(version, {})

    def _start(self, version: str, further: Mapping[str, str]) -> KafkaProcess:
        """Start the controller in this version; one that runs is stopped before."""
        if self._process is not None:
            self._process.stop()
        self._process = KafkaProcess(version, self._folder)

        def prepare(settings: Path, log: IO[bytes]) -> None:
            format_storage(version, settings, self.quorum.cluster_id, log)

        self._process.start_with({**self._config(self._process.data), **further}, prepare)
        return self._process

    def _config(self, data: Path) -> Mapping[str, str]:
        return {
            "process.roles": "controller",
            "node.id": str(_NODE_ID),
            "controller.quorum.voters": self.quorum.voter,
            "controller.listener.names": "CONTROLLER",
            "listeners": self._listener,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(data),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.stop()


def _cluster_id(zookeeper: str) -> str:
    with connected(zookeeper) as client:
        value, _ = client.get("/cluster/id")
    return str(json.loads(value)["id"])
