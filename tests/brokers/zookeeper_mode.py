"""ZooKeeper mode: the settings of a broker. Its topics are created as nodes, as Kafka's own tools do."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kazoo.client import KazooClient

from tests.brokers.metadata import Metadata
from tests.brokers.properties import Listener
from tests.nodes import connected

_SESSION_MS = 6000  # short: the default is 18000 from 2.5 on
_TIMEOUT_S = 60.0
_POLL_S = 0.1


class ZooKeeperMode:
    """The ZooKeeper mode of one broker: it reads and writes the nodes of the cluster."""

    def __init__(self, connect: str, broker_id: int, *, lists_itself: bool) -> None:
        """`connect` is `host:port/chroot`; the chroot is created if it is missing."""
        self._connect = connect
        self._broker_id = broker_id
        self._registration = f"/brokers/ids/{broker_id}"
        self._lists_itself = lists_itself

    @property
    def config(self) -> Mapping[str, str]:
        """The broker's settings for this mode."""
        return {
            "broker.id": str(self._broker_id),
            "zookeeper.connect": self._connect,
            "zookeeper.session.timeout.ms": str(_SESSION_MS),
        }

    @property
    def listeners(self) -> list[Listener]:
        """The listeners that the broker needs for itself: none."""
        return []

    def prepare(self, _settings: Path, _log: IO[bytes]) -> None:
        """Create the chroot, and wait until the session of a killed broker has ended.

        From 0.9 on, a broker refuses to start while its id is still registered.

        Raises:
            TimeoutError: the session did not end.
        """
        server, _, chroot = self._connect.partition("/")
        with connected(server) as client:
            client.ensure_path(f"/{chroot}")
        with connected(self._connect) as client:
            _until_gone(client, self._registration)

    def serves(self, metadata: Metadata) -> bool:
        """Whether the broker lists itself and leads its partitions. 0.8 lists itself only if there is a topic."""
        if self._broker_id in metadata.brokers:
            return metadata.leads(self._broker_id)
        if self._lists_itself:
            return False
        with connected(self._connect) as client:
            return bool(client.exists(self._registration)) and not client.get_children("/brokers/topics")

    def create_topic(self, name: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str]) -> None:
        """Write the nodes that the controller watches: first the settings, then the replicas of each partition."""
        assignment = {str(number): list(brokers) for number, brokers in enumerate(replicas)}
        with connected(self._connect) as client:
            client.create(f"/config/topics/{name}", _json(config=config), makepath=True)
            client.create(f"/brokers/topics/{name}", _json(partitions=assignment))

    def delete_topic(self, name: str) -> None:
        """Delete a topic through the controller, and wait until its name is free.

        Raises:
            TimeoutError: the controller did not delete the topic.
        """
        request_path = f"/admin/delete_topics/{name}"
        with connected(self._connect) as client:
            client.create(request_path, makepath=True)
            _until_gone(client, request_path)  # the controller deletes this node last


def _until_gone(client: KazooClient, node: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while client.exists(node):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{node} still exists after {_TIMEOUT_S:g} s")
        time.sleep(_POLL_S)


def _json(**fields: object) -> bytes:
    return json.dumps({"version": 1, **fields}).encode()
