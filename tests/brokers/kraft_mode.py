"""KRaft mode: the settings and the storage of a broker. A stock admin client creates and deletes its topics."""

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.brokers import jvm
from tests.brokers.metadata import Metadata
from tests.brokers.ports import HOST
from tests.brokers.properties import Listener

_ANSWER_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The controllers of a cluster: the id of the cluster, and the voter as `node id@host:port`."""

    cluster_id: str
    voter: str


def format_storage(version: str, settings: Path, cluster_id: str, log: IO[bytes], *options: str) -> None:
    """Format the storage of the server with these settings, unless it has data.

    Raises:
        SubprocessError: the format failed.
    """
    if (settings.with_name("logs") / "meta.properties").exists():
        return
    # Options are written as --name=value: an id that begins with "-" would otherwise be parsed as an option.
    arguments = ["format", f"--cluster-id={cluster_id}", f"--config={settings}", *options]
    command = jvm.command(version, "kafka.tools.StorageTool", *arguments)
    subprocess.run(command, stdout=log, stderr=log, check=True, timeout=_ANSWER_S)


class KRaftMode:
    """The KRaft mode of one broker. The first broker of a cluster is also its controller."""

    def __init__(
        self,
        version: str,
        bootstrap: str,
        *,
        node_id: int,
        controller_port: int,
        users: Mapping[str, str],
        joins: Quorum | None = None,
    ) -> None:
        """The broker will listen at `bootstrap`; `users`, each with a password, can log in with SCRAM.

        `joins` are the controllers of an existing cluster.
        """
        self._version = version
        self._bootstrap = bootstrap
        self._node_id = node_id
        self._controller_port = controller_port
        self._users = users
        self._is_first = joins is None
        self.quorum = joins or Quorum(
            cluster_id=urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
            voter=f"{node_id}@{HOST}:{controller_port}",
        )

    @property
    def config(self) -> Mapping[str, str]:
        """The broker's settings for this mode."""
        return {
            "process.roles": "broker,controller" if self._is_first else "broker",
            "node.id": str(self._node_id),
            "controller.quorum.voters": self.quorum.voter,
            "controller.listener.names": "CONTROLLER",
            # A killed broker can register again only after its session has ended, so sessions are short.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
        }

    @property
    def listeners(self) -> list[Listener]:
        """The listeners that the broker needs for itself."""
        controller = Listener(name="CONTROLLER", protocol="PLAINTEXT", port=self._controller_port)
        return [controller] if self._is_first else []

    def prepare(self, settings: Path, log: IO[bytes]) -> None:
        """Format the broker's storage before its first start.

        Raises:
            SubprocessError: the format failed.
        """
        scram = [
            f"--add-scram={mechanism}=[name={name},password={password}]"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for name, password in self._users.items()
        ]
        format_storage(self._version, settings, self.quorum.cluster_id, log, *scram)

    def serves(self, metadata: Metadata) -> bool:
        """Whether the broker lists itself and leads its partitions."""
        return self._node_id in metadata.brokers and metadata.leads(self._node_id)

    def create_topic(self, name: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str]) -> None:
        """Create a topic through the controller."""
        assignment = [list(brokers) for brokers in replicas]
        topic = NewTopic(name, len(assignment), replica_assignment=assignment, config=dict(config))
        admin = self._admin()  # this reference keeps the client alive until the request has been answered
        admin.create_topics([topic])[name].result(_ANSWER_S)

    def delete_topic(self, name: str) -> None:
        """Delete a topic through the controller."""
        admin = self._admin()
        admin.delete_topics([name])[name].result(_ANSWER_S)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 3})
