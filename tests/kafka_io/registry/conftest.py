"""A registry under test, and a plain kazoo client beside it to write what a test needs."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_io.registry.session import ZooKeeperQueries
from kafka_io.registry.zookeeper import Registry

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def nodes(chroot: str) -> Iterator[Any]:
    """A kazoo client under the test's chroot."""
    client = KazooClient(chroot)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def kafka(nodes: Any) -> Any:
    """The same client, with the two nodes that make the chroot a Kafka registry."""
    nodes.create("/brokers")
    nodes.create("/brokers/ids")
    nodes.create("/brokers/topics")
    return nodes


@pytest.fixture
def registry(chroot: str) -> Iterator[Registry]:
    """The registry in the test's chroot."""
    with Registry.open(chroot, timeout_s=20) as registry:
        yield registry


@pytest.fixture
def load_dump(nodes: Any) -> Callable[[str], None]:
    """Write the nodes that were captured from the ZooKeeper of a genuine broker, also those with null values."""

    def load(name: str) -> None:
        for node in json.loads((GOLDEN / "v07" / "zk" / name).read_text(encoding="utf-8")):
            if node["path"] != "/":
                data = None if node["data_hex"] is None else bytes.fromhex(node["data_hex"])
                nodes.create(node["path"], data)

    return load


@pytest.fixture
def load_release(nodes: Any) -> Callable[[str], dict[str, str | None]]:
    """Write the nodes of a real broker of a release from 0.8 on, and return them."""

    def load(release: str) -> dict[str, str | None]:
        values: dict[str, str | None] = json.loads(
            (GOLDEN / "registry" / f"{release}.json").read_text(encoding="utf-8")
        )
        for path, value in values.items():
            nodes.create(path, None if value is None else value.encode())
        return values

    return load


@pytest.fixture
def vanishing(monkeypatch: pytest.MonkeyPatch, kafka: Any) -> Callable[[str, str], None]:
    """Delete a node after it was listed and before the named query reads it."""

    def arrange(question: str, victim: str) -> None:
        original = getattr(ZooKeeperQueries, question)

        def late(self: ZooKeeperQueries, paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
            listed = list(paths)
            if victim in listed:
                kafka.delete(victim)
            return iter(list(original(self, listed)))

        monkeypatch.setattr(ZooKeeperQueries, question, late)

    return arrange


@pytest.fixture
def expire() -> Callable[[Registry], None]:
    """End a registry's session on the server, as a pause longer than its timeout would."""

    def end(registry: Registry) -> None:
        client = registry._session._client
        twin = KazooClient(hosts=",".join(f"{host}:{port}" for host, port in client.hosts), client_id=client.client_id)
        twin.start()
        twin.stop()  # a clean goodbye in the name of the session they share
        twin.close()

    return end
