"""Listings: what ZooKeeper contains, and which nodes were skipped.

A node that cannot be used is skipped, and its path and the reason are reported. If ZooKeeper itself cannot be read,
that is an error, and never an empty listing (fault Z06).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from kafka_io.errors import KafkaIOError, NodeMalformed, RegistryError

if TYPE_CHECKING:  # clusters without ZooKeeper have listings too, and need no kazoo
    from kafka_io.zookeeper.session import ZooKeeperQueries

T = TypeVar("T")

Skip = Callable[[str, RegistryError], None]
"""Called with the path of a skipped node, and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedNode:
    """A node that was listed but cannot be used, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """The brokers or topics that ZooKeeper or the brokers list, in order, and what was skipped.

    Args:
        entries: what can be used.
        skipped: the nodes, or the topics of brokers, that cannot be used.
        refused: the names of topics that exist, and that cannot be described now, with the error.
    """

    entries: tuple[T, ...]
    skipped: tuple[SkippedNode, ...] = ()
    refused: Mapping[str, KafkaIOError] = field(default_factory=dict)


class NodeVanished(RegistryError):
    """A node was deleted after it was listed and before it was read."""


def collect(read: Callable[[Skip], Iterable[T]]) -> Listing[T]:
    """Everything that `read` yields, and the nodes that it skips."""
    skipped: list[SkippedNode] = []
    entries = tuple(read(lambda path, error: skipped.append(SkippedNode(path=path, reason=str(error)))))
    return Listing(entries=entries, skipped=tuple(skipped))


def names_under(queries: "ZooKeeperQueries", path: str) -> tuple[str, ...]:
    """The names of the children of a node that exists for every Kafka cluster.

    Raises:
        RegistryError: the node does not exist, so no Kafka cluster uses this chroot.
    """
    node = queries.node(path)
    if node is not None:
        return node.children
    if not queries.exists("/"):
        raise RegistryError("the chroot of the ZooKeeper connect string does not exist")
    raise RegistryError(
        f"this is not a Kafka registry: ZooKeeper has no node {path!r} under the chroot (a new cluster creates it)"
    )


def present(answer: T | None) -> T:
    """The answer for a node that existed a moment ago (fault Z03).

    Raises:
        NodeVanished: the node does not exist any more.
    """
    if answer is None:
        raise NodeVanished("the node was deleted after it was listed and before it was read")
    return answer


@contextmanager
def skipping(path: str, skip: Skip) -> Iterator[None]:
    """A block in which an error that concerns only the node at `path` skips this node."""
    try:
        yield
    except (NodeMalformed, NodeVanished) as error:
        skip(path, error)


def ignore(_path: str, _error: RegistryError) -> None:
    """A `Skip` that ignores nodes, because the listing of these nodes reports them."""
