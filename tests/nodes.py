"""ZooKeeper for tests: a client, and an empty registry."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient


@contextmanager
def connected(connect: str) -> Iterator[KazooClient]:
    """A client of `host:port[/chroot]`."""
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def empty_registry(connect: str) -> str:
    """`host:port/chroot` of a new registry."""
    node = f"/test-{uuid.uuid4().hex}"
    with connected(connect) as client:
        client.create(node)
    return connect + node
