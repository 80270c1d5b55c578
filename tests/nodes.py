"""ZooKeeper as tests need it: a client for a moment, and a registry of one's own."""

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
    """`host:port/chroot` of a registry that nobody else has."""
    node = f"/test-{uuid.uuid4().hex}"
    with connected(connect) as client:
        client.create(node)
    return connect + node
