"""The client of ZooKeeper under test, and a kazoo client that writes the nodes that a test needs."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_io.zookeeper.session import ZooKeeperQueries
from kafka_io.zookeeper.zookeeper import ZooKeeper

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def nodes(chroot: str) -> Iterator[Any]:
    """A kazoo client in the test's chroot."""
    client = KazooClient(chroot)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def kafka(nodes: Any) -> Any:
    """The same client, with the two nodes that make the chroot that of a Kafka cluster."""
    nodes.create("/brokers")
    nodes.create("/brokers/ids")
    nodes.create("/brokers/topics")
    return nodes


@pytest.fixture
def zookeeper(chroot: str) -> Iterator[ZooKeeper]:
    """The client in the test's chroot."""
    with ZooKeeper.open(chroot, timeout_s=20) as zookeeper:
        yield zookeeper


@pytest.fixture
def load_dump(nodes: Any) -> Callable[[str], None]:
    """Writes the nodes that were captured from the ZooKeeper of a genuine broker. Some have null values."""

    def load(name: str) -> None:
        for node in json.loads((GOLDEN / "v07" / "zk" / name).read_text(encoding="utf-8")):
            if node["path"] != "/":
                data = None if node["data_hex"] is None else bytes.fromhex(node["data_hex"])
                nodes.create(node["path"], data)

    return load


@pytest.fixture
def load_release(nodes: Any) -> Callable[[str], dict[str, str | None]]:
    """Writes the nodes that a real broker of a release from 0.8 on created, and returns them."""

    def load(release: str) -> dict[str, str | None]:
        values: dict[str, str | None] = json.loads(
            (GOLDEN / "zookeeper" / f"{release}.json").read_text(encoding="utf-8")
        )
        for path, value in values.items():
            nodes.create(path, None if value is None else value.encode())
        return values

    return load


@pytest.fixture
def vanishing(monkeypatch: pytest.MonkeyPatch, kafka: Any) -> Callable[[str, str], None]:
    """`vanishing(query, path)` deletes the node after it was listed and before the named query reads it."""

    def arrange(query: str, path: str) -> None:
        original = getattr(ZooKeeperQueries, query)

        def delete_first(self: ZooKeeperQueries, paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
            listed = list(paths)
            if path in listed:
                kafka.delete(path)
            return iter(list(original(self, listed)))

        monkeypatch.setattr(ZooKeeperQueries, query, delete_first)

    return arrange


@pytest.fixture
def expire() -> Callable[[ZooKeeper], None]:
    """Ends the session of a client on the server, as a pause longer than the session timeout does."""

    def end(zookeeper: ZooKeeper) -> None:
        client = zookeeper._session._client
        second_client = KazooClient(
            hosts=",".join(f"{host}:{port}" for host, port in client.hosts), client_id=client.client_id
        )
        second_client.start()
        second_client.stop()  # closes the session that both clients share
        second_client.close()

    return end
