"""The topics of a cluster, in either of the two formats of nodes.

In 0.7 the node of a topic has no value. It has one child per running broker, with that broker's number of partitions.
From 0.8 on the value is JSON with the partition numbers. The only child, `partitions`, contains the state of each.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kafka_io.errors import KafkaIOError, NodeMalformed, RegistryError
from kafka_io.model import BrokerPartition, TopicEntry
from kafka_io.zookeeper.brokers import evidence_of_brokers
from kafka_io.zookeeper.listing import Listing, NodeVanished, Skip, collect, ignore, names_under, present, skipping
from kafka_io.zookeeper.modern import parse_settings, parse_topic
from kafka_io.zookeeper.node_format import FormatEvidence, NodeFormat
from kafka_io.zookeeper.node_values import looks_like_json, malformed
from kafka_io.zookeeper.paths import (
    BROKER_IDS,
    DELETED_TOPICS,
    INTERNAL_TOPICS,
    TOPIC_SETTINGS,
    TOPICS,
    check_topic_name,
    parse_topic_share,
    topic_path,
)
from kafka_io.zookeeper.session import NodeContent, ZooKeeperNode, ZooKeeperQueries


def read_format(queries: ZooKeeperQueries) -> NodeFormat | None:
    """The format that the brokers show or, without a running broker, the topics; None if neither shows one."""
    queries.sync()
    names_under(queries, BROKER_IDS)  # raises an error if the nodes of Kafka are missing
    evidence = evidence_of_brokers(queries)
    if evidence.node_format is None:
        # The evidence of a topic's node is added before the topic is listed, so the first topic is enough.
        next(read_topics(queries, topic_names(queries), evidence, ignore), None)
    return evidence.node_format


def list_topics(queries: ZooKeeperQueries) -> Listing[TopicEntry]:
    """All topics that can be read, sorted by name."""
    refused: dict[str, KafkaIOError] = {}

    def read(skip_node: Skip) -> Iterator[TopicEntry]:
        def skip(path: str, error: RegistryError) -> None:
            skip_node(path, error)
            if isinstance(error, NodeMalformed):  # the topic exists: nobody may take it for a deleted one (fault A13)
                refused[path.removeprefix(f"{TOPICS}/").partition("/")[0]] = error

        deleted = queries.children(DELETED_TOPICS)
        evidence = evidence_of_brokers(queries)
        for entry in read_topics(queries, sorted(topic_names(queries)), evidence, skip):
            if entry.name in deleted:
                skip(topic_path(entry.name), RegistryError(f"the topic is marked for deletion in {DELETED_TOPICS!r}"))
            elif entry.name not in INTERNAL_TOPICS or evidence.node_format == NodeFormat.V07:
                yield entry

    queries.sync()
    listing = collect(read)
    listed = {entry.name for entry in listing.entries}
    return replace(listing, refused={name: error for name, error in refused.items() if name not in listed})


def read_topic(queries: ZooKeeperQueries, name: str) -> TopicEntry | None:
    """One topic, or None if it does not exist.

    A malformed node is raised as an error, because an entry without it would hide partitions.
    """

    def skip(_: str, error: RegistryError) -> None:
        if not isinstance(error, NodeVanished):
            raise error

    queries.sync()
    entry = next(read_topics(queries, [name], evidence_of_brokers(queries), skip), None)
    if entry is None:
        topic_names(queries)  # raises an error if the nodes of Kafka are missing
    return entry


def read_settings(queries: ZooKeeperQueries, names: Iterable[str]) -> dict[str, dict[str, str] | NodeMalformed]:
    """The settings of each topic that override those of its brokers; empty for a topic without such a node."""
    queries.sync()
    paths = {f"{TOPIC_SETTINGS}/{name}": name for name in names}
    settings: dict[str, dict[str, str] | NodeMalformed] = {}
    for path, content in queries.contents(paths):
        try:
            settings[paths[path]] = parse_settings(path, content.value) if content else {}
        except NodeMalformed as error:
            settings[paths[path]] = error
    return settings


def topic_names(queries: ZooKeeperQueries) -> tuple[str, ...]:
    """The names of all topics.

    The parent node is created with the first topic: a cluster that never had a topic has only the node of its brokers.
    """
    if not queries.exists(TOPICS) and queries.exists(BROKER_IDS):
        return ()
    return names_under(queries, TOPICS)


def read_topics(
    queries: ZooKeeperQueries, names: Iterable[str], evidence: FormatEvidence, skip: Skip
) -> Iterator[TopicEntry]:
    """The topics with these names, first the topics of 0.8 and later. Their formats are added to the evidence."""
    paths = list(_legal(names, skip))
    if evidence.node_format != NodeFormat.V07:  # in 0.7 the values are empty and need not be read
        contents = queries.contents(paths)
        paths = []
        for path, content in contents:
            with skipping(path, skip):
                if not looks_like_json(present(content).value):
                    paths.append(path)
                    continue
                evidence.add(NodeFormat.JSON, path)
                yield _entry(path, present(content))
    yield from _read_topics_07(queries, paths, evidence, skip)


def _legal(names: Iterable[str], skip: Skip) -> Iterator[str]:
    for name in names:
        with skipping(topic_path(name), skip):
            check_topic_name(name)
            yield topic_path(name)


def _entry(path: str, content: NodeContent) -> TopicEntry:
    """A topic of 0.8 or later. It has no partitions until its first partition has a state (fault Z07).

    The controller creates the only child of the topic together with that state, so the number of children, which comes
    with the value, shows it without another request.
    """
    node = parse_topic(path, content.value)
    numbers = node.partitions if content.child_count else ()
    # The creation zxid identifies the incarnation of the topic. It stays when an upgrade to 2.8 gives the topic an id.
    created = str(content.created_zxid)
    return TopicEntry(
        name=_name(path),
        incarnation=node.topic_id or created,
        also=(created,) if node.topic_id else (),
        partitions=tuple(BrokerPartition(None, number) for number in numbers),
    )


def _read_topics_07(
    queries: ZooKeeperQueries, paths: Iterable[str], evidence: FormatEvidence, skip: Skip
) -> Iterator[TopicEntry]:
    nodes = _nodes_07(queries, paths, evidence, skip)
    shares: dict[str, list[BrokerPartition]] = {path: [] for path in nodes}
    topics = {f"{path}/{child}": path for path, node in nodes.items() for child in node.children}
    for path, content in queries.contents(topics):
        with skipping(path, skip):
            shares[topics[path]].extend(parse_topic_share(path, present(content).value))
    for path, node in nodes.items():
        # The creation zxid identifies the incarnation of the topic.
        yield TopicEntry(name=_name(path), incarnation=str(node.created_zxid), partitions=tuple(sorted(shares[path])))


def _nodes_07(
    queries: ZooKeeperQueries, paths: Iterable[str], evidence: FormatEvidence, skip: Skip
) -> dict[str, ZooKeeperNode]:
    nodes = {}
    for path, answer in queries.nodes(paths):
        with skipping(path, skip):
            node = present(answer)
            # A node without children and without JSON shows nothing: 0.7 leaves such nodes, and people create some.
            if "partitions" in node.children:
                evidence.add(NodeFormat.JSON, path)
            if any(child.isdecimal() for child in node.children):
                evidence.add(NodeFormat.V07, path)
            if evidence.node_format == NodeFormat.JSON:
                raise malformed(path, "its value is not JSON, but the values of other nodes are")
            nodes[path] = node
    return nodes


def _name(path: str) -> str:
    return path.rpartition("/")[2]
