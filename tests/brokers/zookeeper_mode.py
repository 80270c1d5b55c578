"""How a broker that keeps its cluster in ZooKeeper is set up, found, and given topics: by nodes, as its tools do it."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kazoo.client import KazooClient

from tests.brokers.metadata import Metadata
from tests.brokers.properties import Listener
from tests.nodes import connected

_SESSION_MS = 6000  # 18000 is the default from 2.5 on
_GONE_S = 60.0
_POLL_S = 0.1


class ZooKeeperMode:
    """The place of one broker in ZooKeeper."""

    def __init__(self, connect: str, broker_id: int, *, lists_itself: bool) -> None:
        """`connect` is `host:port/chroot`; the chroot is made if it lacks."""
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
        """The ports it needs for itself."""
        return []

    def prepare(self, _settings: Path, _log: IO[bytes]) -> None:
        """Make the chroot, and wait until the session of a broker that was killed has ended.

        A broker that finds its own id registered gives up, from 0.9 on.

        Raises:
            TimeoutError: it did not end.
        """
        server, _, chroot = self._connect.partition("/")
        with connected(server) as client:
            client.ensure_path(f"/{chroot}")
        with connected(self._connect) as client:
            _until_gone(client, self._registration)

    def serves(self, metadata: Metadata) -> bool:
        """The broker lists itself, and leads what it has; or it is registered, and has nothing to list itself for."""
        if self._broker_id in metadata.brokers:
            return metadata.leads(self._broker_id)
        if self._lists_itself:
            return False
        with connected(self._connect) as client:
            return bool(client.exists(self._registration)) and not client.get_children("/brokers/topics")

    def create_topic(self, name: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str]) -> None:
        """Write what the controller waits for: settings first, then who has which partition."""
        owned = {str(number): list(brokers) for number, brokers in enumerate(replicas)}
        with connected(self._connect) as client:
            client.create(f"/config/topics/{name}", _json(config=config), makepath=True)
            client.create(f"/brokers/topics/{name}", _json(partitions=owned))

    def delete_topic(self, name: str) -> None:
        """Ask the controller to, and wait until it has: then the name is free.

        Raises:
            TimeoutError: it did not.
        """
        request_path = f"/admin/delete_topics/{name}"
        with connected(self._connect) as client:
            client.create(request_path, makepath=True)
            _until_gone(client, request_path)  # the last node to go


def _until_gone(client: KazooClient, node: str) -> None:
    deadline = time.monotonic() + _GONE_S
    while client.exists(node):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{node} is still there after {_GONE_S:g} s")
        time.sleep(_POLL_S)


def _json(**fields: object) -> bytes:
    return json.dumps({"version": 1, **fields}).encode()
