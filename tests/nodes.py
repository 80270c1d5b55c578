"""ZooKeeper in tests: opens a client, and creates an empty chroot."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient


@contextmanager
def connected(connect: str) -> Iterator[KazooClient]:
    """A kazoo client of `host:port[/chroot]` for the length of a `with` block."""
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def empty_chroot(connect: str) -> str:
    """Create a node for a new cluster; return its `host:port/chroot`."""
    node = f"/test-{uuid.uuid4().hex}"
    with connected(connect) as client:
        client.create(node)
    return connect + node
