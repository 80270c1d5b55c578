"""The topics of a registry, whichever dialect it is written in.

0.7 keeps the number of partitions below a topic's node, one child per broker that is up, and nothing in its value.
From 0.8 on the value is JSON that numbers the partitions; the only child, `partitions`, holds who leads each.
"""

from collections.abc import Iterable, Iterator, Mapping

from kafka_io.errors import NodeMalformed, RegistryError
from kafka_io.model import BrokerPartition, TopicEntry
from kafka_io.registry.brokers import evidence_of_brokers
from kafka_io.registry.dialect import Dialect, Evidence
from kafka_io.registry.json_text import looks_like_json
from kafka_io.registry.listing import Listing, Skip, Vanished, collect, names_under, present, skipping
from kafka_io.registry.modern import PartitionState, parse_settings, parse_state, parse_topic
from kafka_io.registry.paths import (
    BROKER_IDS,
    DELETED_TOPICS,
    INTERNAL_TOPICS,
    MOST_PARTITIONS,
    TOPICS,
    check_topic_name,
    parse_topic_share,
    partitions_path,
    settings_path,
    state_path,
    topic_path,
)
from kafka_io.registry.session import Asking, Content, Node
from kafka_io.registry.text import malformed, number


def list_topics(asking: Asking) -> Listing[TopicEntry]:
    """All topics that are there to be read, by name."""

    def read(skip: Skip) -> Iterator[TopicEntry]:
        doomed = asking.node(DELETED_TOPICS)
        evidence = evidence_of_brokers(asking)
        for entry in read_topics(asking, sorted(topic_names(asking)), evidence, skip):
            if doomed and entry.name in doomed.children:
                skip(topic_path(entry.name), RegistryError(f"the topic is about to be deleted: see {DELETED_TOPICS!r}"))
            elif entry.name not in INTERNAL_TOPICS or evidence.dialect == Dialect.V07:
                yield entry

    asking.sync()
    return collect(read)


def read_topic(asking: Asking, name: str) -> TopicEntry | None:
    """One topic, or None; a malformed node of it is raised, as an entry without it would hide partitions."""

    def skip(_: str, error: RegistryError) -> None:
        if not isinstance(error, Vanished):
            raise error

    asking.sync()
    entry = next(read_topics(asking, [name], evidence_of_brokers(asking), skip), None)
    if entry is None:
        topic_names(asking)  # says so if this is no registry at all
    return entry


def read_states(asking: Asking, name: str) -> Mapping[int, PartitionState]:
    """The states of a topic's partitions, by number; a partition that has none yet is left out (Z07)."""
    asking.sync()
    node = asking.node(partitions_path(name))
    if node is None:
        topic_names(asking)
        return {}
    children = {state_path(name, child): child for child in node.children}
    return {
        number(path, children[path], least=0, most=MOST_PARTITIONS - 1): parse_state(path, content.value)
        for path, content in asking.contents(children)
        if content is not None
    }


def read_settings(asking: Asking, names: Iterable[str]) -> dict[str, dict[str, str] | NodeMalformed]:
    """What the settings of each topic change of its brokers' own; nothing where there is no such node."""
    asking.sync()
    paths = {settings_path(name): name for name in names}
    return {paths[path]: _settings(path, content) for path, content in asking.contents(paths)}


def topic_names(asking: Asking) -> tuple[str, ...]:
    """The first topic makes the node above it; a cluster that never had one has just its brokers' node."""
    if not asking.exists(TOPICS) and asking.exists(BROKER_IDS):
        return ()
    return names_under(asking, TOPICS)


def read_topics(asking: Asking, names: Iterable[str], evidence: Evidence, skip: Skip) -> Iterator[TopicEntry]:
    """The topics by these names, added to the evidence; those of 0.8 and later come first."""
    paths = list(_legal(names, skip))
    if evidence.dialect != Dialect.V07:  # 0.7 keeps nothing in a topic's value, so there it is not asked for
        contents = asking.contents(paths)
        paths = []
        for path, content in contents:
            with skipping(path, skip):
                if not looks_like_json(present(content).value):
                    paths.append(path)
                    continue
                evidence.add(Dialect.JSON, path)
                yield _entry(path, present(content))
    yield from _read_topics_07(asking, paths, evidence, skip)


def _legal(names: Iterable[str], skip: Skip) -> Iterator[str]:
    for name in names:
        with skipping(topic_path(name), skip):
            check_topic_name(name)
            yield topic_path(name)


def _entry(path: str, content: Content) -> TopicEntry:
    """A topic of 0.8 or later. It has no partitions before the first one's state is there (Z07).

    The controller makes the topic's only child with that state: to count children costs no question.
    """
    node = parse_topic(path, content.value)
    # Tells this life of the topic from one before a deletion. A topic that an upgrade to 2.8 gives an id keeps it.
    created = str(content.created_zxid)
    return TopicEntry(
        name=_name(path),
        incarnation=node.topic_id or created,
        also=(created,) if node.topic_id else (),
        partitions=tuple(BrokerPartition(None, each) for each in node.partitions) if content.child_count else (),
    )


def _settings(path: str, content: Content | None) -> dict[str, str] | NodeMalformed:
    try:
        return parse_settings(path, content.value) if content else {}
    except NodeMalformed as error:
        return error


def _read_topics_07(asking: Asking, paths: Iterable[str], evidence: Evidence, skip: Skip) -> Iterator[TopicEntry]:
    nodes = _nodes_07(asking, paths, evidence, skip)
    shares: dict[str, list[BrokerPartition]] = {path: [] for path in nodes}
    topics = {f"{path}/{child}": path for path, node in nodes.items() for child in node.children}
    for path, content in asking.contents(topics):
        with skipping(path, skip):
            shares[topics[path]].extend(parse_topic_share(path, present(content).value))
    for path, node in nodes.items():
        # The creation zxid tells this life of the topic from one before a deletion.
        yield TopicEntry(name=_name(path), incarnation=str(node.created_zxid), partitions=tuple(sorted(shares[path])))


def _nodes_07(asking: Asking, paths: Iterable[str], evidence: Evidence, skip: Skip) -> dict[str, Node]:
    nodes = {}
    for path, answer in asking.nodes(paths):
        with skipping(path, skip):
            node = present(answer)
            # Without children a node without JSON tells nothing: 0.7 leaves such ones behind, and hands make some.
            if "partitions" in node.children:
                evidence.add(Dialect.JSON, path)
            if any(child.isdecimal() for child in node.children):
                evidence.add(Dialect.V07, path)
            if evidence.dialect == Dialect.JSON:
                raise malformed(path, "its value is not JSON, unlike those of the other nodes")
            nodes[path] = node
    return nodes


def _name(path: str) -> str:
    return path.rpartition("/")[2]
