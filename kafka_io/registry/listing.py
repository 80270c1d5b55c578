"""Reading the registry: what there is, and which nodes had to be left out.

A node that cannot be read is left out by name and reason; a registry that cannot be read is never an empty one (Z06).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_io.errors import NodeMalformed, RegistryError
from kafka_io.model import Broker, BrokerPartition, TopicEntry
from kafka_io.registry.paths import BROKER_IDS, TOPICS, check_topic_name, parse_broker_07, parse_topic_share, topic_path
from kafka_io.registry.session import Asking, Node

T = TypeVar("T")

Skip = Callable[[str, RegistryError], None]
"""Told the path of a node that is left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A node that was listed and could not be used."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """What the registry holds, in order, and which of its nodes were left out."""

    found: tuple[T, ...]
    skipped: tuple[Skipped, ...] = ()


class Vanished(RegistryError):
    """A node went between being listed and being read."""


def list_brokers(asking: Asking) -> Listing[Broker]:
    """All brokers, by id."""
    asking.sync()
    return _listing(lambda skip: sorted(_read_brokers(asking, skip)))


def list_topics(asking: Asking) -> Listing[TopicEntry]:
    """All topics, by name."""
    asking.sync()
    return _listing(lambda skip: _read_topics(asking, sorted(_topic_names(asking)), skip))


def read_topic(asking: Asking, name: str) -> TopicEntry | None:
    """One topic, or None; a malformed node of it is raised, as an entry without it would hide partitions."""

    def skip(_: str, error: RegistryError) -> None:
        if not isinstance(error, Vanished):
            raise error

    asking.sync()
    entry = next(_read_topics(asking, [name], skip), None)
    if entry is None:
        _topic_names(asking)  # says so if this is no registry at all
    return entry


def _listing(read: Callable[[Skip], Iterable[T]]) -> Listing[T]:
    skipped: list[Skipped] = []
    found = tuple(read(lambda path, error: skipped.append(Skipped(path=path, reason=str(error)))))
    return Listing(found=found, skipped=tuple(skipped))


def _read_brokers(asking: Asking, skip: Skip) -> Iterator[Broker]:
    for path, value in asking.values(f"{BROKER_IDS}/{name}" for name in _names(asking, BROKER_IDS)):
        with _skipping(path, skip):
            yield parse_broker_07(path, _present(value))


def _read_topics(asking: Asking, names: Iterable[str], skip: Skip) -> Iterator[TopicEntry]:
    nodes = _topic_nodes(asking, names, skip)
    shares: dict[str, list[BrokerPartition]] = {name: [] for name in nodes}
    topics = {f"{topic_path(name)}/{child}": name for name, node in nodes.items() for child in node.children}
    for path, value in asking.values(topics):
        with _skipping(path, skip):
            shares[topics[path]].extend(parse_topic_share(path, _present(value)))
    for name, node in nodes.items():
        # The creation zxid tells this life of the topic from one before a deletion.
        yield TopicEntry(name=name, incarnation=str(node.created_zxid), partitions=tuple(sorted(shares[name])))


def _topic_nodes(asking: Asking, names: Iterable[str], skip: Skip) -> dict[str, Node]:
    legal = {}
    for name in names:
        with _skipping(topic_path(name), skip):
            check_topic_name(name)
            legal[topic_path(name)] = name
    nodes = {}
    for path, node in asking.nodes(legal):
        with _skipping(path, skip):
            nodes[legal[path]] = _present(node)
    return nodes


def _topic_names(asking: Asking) -> tuple[str, ...]:
    """The first topic makes the node above it; a cluster that never had one has just its brokers' node."""
    node = asking.node(TOPICS)
    if node is None and asking.exists(BROKER_IDS):
        return ()
    return _names(asking, TOPICS)


def _names(asking: Asking, path: str) -> tuple[str, ...]:
    node = asking.node(path)
    if node is None:
        raise _not_a_registry(asking, path)
    return node.children


def _not_a_registry(asking: Asking, path: str) -> RegistryError:
    if not asking.exists("/"):
        return RegistryError("the chroot of the ZooKeeper connect string does not exist")
    return RegistryError(f"this is not a Kafka registry, or not yet: ZooKeeper has no {path!r} under the chroot")


def _present(answer: T | None) -> T:
    if answer is None:
        raise Vanished("the node vanished between being listed and being read")
    return answer


@contextmanager
def _skipping(path: str, skip: Skip) -> Iterator[None]:
    try:
        yield
    except (NodeMalformed, Vanished) as error:
        skip(path, error)
