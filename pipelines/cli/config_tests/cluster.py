"""Tests of `penstock config check` about a cluster: brokers and their releases, rights of the client, clocks."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_io.brokers.bootstrap import BOOTSTRAP_ID
from kafka_io.brokers.broker_description import TopicOperation, release_of, topic_operations
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import Broker, Generation, TopicEntry, TopicIds
from pipelines.cli.config_tests.result import (
    BrokerRefused,
    CheckResult,
    ClockWrong,
    RightsMissing,
    checked,
    failed,
    passed,
)
from pipelines.cli.output.shown_status import WITHOUT_IDS
from resources.quantities import duration
from resources.settings.settings import Settings

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster

MAX_AHEAD_S = 60.0
"""The time of a record or a file may be so many seconds later than the clock of this machine."""
_SAMPLED_TOPICS = 20
_NAMED_TOPICS = 3
_NEEDED = (TopicOperation.READ, TopicOperation.DESCRIBE_CONFIGS)  # without DESCRIBE a topic is not listed


def check_cluster(settings: Settings, name: str) -> Iterator[CheckResult]:
    """Test one cluster of the settings. If it does not answer, there is one result."""
    from resources.kafka import open_cluster

    subject = f"cluster {name}"
    try:
        with open_cluster(settings, name) as cluster:
            listing = cluster.topics()
            topics = [topic for topic in listing.entries if settings.rules(name).allows(topic.name)]
            facts = [*_ask_brokers(cluster, topics), f"topics allowed: {len(topics)} of {len(listing.entries)}"]
            facts += [f"unreadable topics: {len(listing.skipped)}"] if listing.skipped else []
            facts += [f"topics have no ids, {WITHOUT_IDS}"] if lack_ids(topics) else []
            more = list(_check_details(settings, cluster, topics))
    except Exception as error:  # noqa: BLE001 - as in `checked`
        yield failed(subject, error)
        return
    yield passed(subject, ", ".join([*facts, _security(settings, name)]))
    yield from more
    schedules = [settings.schedule_of(name, topic.name) for topic in topics]
    for schedule in settings.schedules_of(name):
        yield passed(f"topics {name}/{schedule}", f"topics: {schedules.count(schedule)}")


def _check_details(settings: Settings, cluster: "Cluster", topics: Sequence[TopicEntry]) -> Iterator[CheckResult]:
    name = cluster.name
    if not cluster.partitions_have_brokers:
        yield checked(f"brokers {name}", lambda: _releases(cluster))
        yield checked(f"rights {name}", lambda: _rights(settings, cluster, topics))
    yield checked(f"clock {name}", lambda: _newest_records(cluster, topics))


def _ask_brokers(cluster: "Cluster", topics: list[TopicEntry]) -> list[str]:
    """Facts about the brokers: generation, number, cluster id.

    Metadata can contain addresses that cannot be reached from here, so the leaders of one topic are asked for bounds.

    Raises:
        KafkaIOError: one of them does not answer.
    """
    cluster_id = [f"id {cluster.cluster_id()}"] if cluster.cluster_id() else []
    sample = next((topic for topic in topics if topic.partitions), None)
    if sample is None:
        return [*cluster_id, "brokers not tested: there is no topic to read"]
    for answer in cluster.bounds(sample.name, sample.partitions).values():
        if isinstance(answer, KafkaIOError):
            raise answer
    sources = [cluster.source(partition) for topic in topics for partition in topic.partitions]
    brokers = {broker for source in sources for broker in source.brokers if broker.id != BOOTSTRAP_ID}
    return [sources[0].generation.value, f"brokers: {len(brokers)}", *cluster_id]


def _releases(cluster: "Cluster") -> str:
    """The release of each broker.

    Raises:
        BrokerRefused: one of them does not answer.
    """
    metadata = cluster.metadata()
    metadata.all_topics()
    releases: dict[Broker, str] = {}
    refusals: dict[Broker, KafkaIOError] = {}
    for broker in metadata.known_brokers:
        if broker.id != BOOTSTRAP_ID:
            connection = metadata.connection(broker)
            try:
                release = release_of(connection.versions)
                releases[broker] = release if connection.generation is Generation.MODERN else "0.8 or 0.9"
            except KafkaIOError as error:
                refusals[broker] = error
    if refusals:
        broker, refusal = next(iter(refusals.items()))
        count = f"{len(refusals)} of {len(refusals) + len(releases)} brokers do not answer"
        where = Where(cluster=cluster.name, broker=f"{broker.id}@{broker.address}")
        raise BrokerRefused(f"{count}: {refusal.reason}", where) from refusal
    kinds = sorted(set(releases.values()))
    mixed = ", of different releases: an upgrade may be in progress" if len(kinds) > 1 else ""
    return f"all {len(releases)} answer, release {' and '.join(kinds)}{mixed}" if releases else "no broker is listed"


def _rights(settings: Settings, cluster: "Cluster", topics: Sequence[TopicEntry]) -> str:
    """Whether the client may read the topics that the settings allow, and their settings.

    Raises:
        RightsMissing: it may not.
    """
    allowed = topic_operations(cluster.metadata())
    if not allowed:
        return "not reported by the brokers: they are older than 2.3, show no topic, or keep no rights"
    for operation in _NEEDED:
        names = [topic.name for topic in topics if topic.name in allowed and operation not in allowed[topic.name]]
        if names:
            word = operation.name
            raise RightsMissing(
                f"the client may not {word} {len(names)} of the topics, such as {', '.join(names[:_NAMED_TOPICS])}; "
                f"`kafka-acls.sh --bootstrap-server ... --add --allow-principal {_principal(settings, cluster.name)} "
                f"--operation {word} --topic {names[0]}` allows it",
                Where(cluster=cluster.name),
            )
    known = sum(topic.name in allowed for topic in topics)
    return f"READ and DESCRIBE_CONFIGS are allowed, topics: {known}; topics without DESCRIBE are not listed"


def _principal(settings: Settings, name: str) -> str:
    sasl = settings.clusters[name].security.sasl
    # By default, brokers take the first part of a principal of Kerberos as the user's name.
    username = sasl and (sasl.username or (sasl.principal or "").partition("@")[0].partition("/")[0])
    return f"User:{username}" if username else "User:NAME"


def _newest_records(cluster: "Cluster", topics: Sequence[TopicEntry]) -> str:
    """How old the newest record of some topics is.

    Raises:
        ClockWrong: it is in the future.
    """
    # Brokers of 0.7 know no times of records.
    tested = [] if cluster.partitions_have_brokers else topics[:_SAMPLED_TOPICS]
    sample = {topic.name: topic.partitions[:1] for topic in tested if topic.partitions}
    last = {
        name: {partition: bounds.latest - 1}
        for name, answers in (cluster.bounds_of(sample) if sample else {}).items()
        for partition, bounds in answers.items()
        if not isinstance(bounds, KafkaIOError) and bounds.latest > bounds.earliest
    }
    times = {
        time_ms: name
        for name, answers in (cluster.times_at(last) if last else {}).items()
        for time_ms in answers.values()
        if isinstance(time_ms, int)
    }
    if not times:
        return "not tested: there is no record with a time"
    newest_ms = max(times)
    ahead_s = newest_ms / 1000 - time.time()
    if ahead_s > MAX_AHEAD_S:
        raise ClockWrong(
            f"the newest record is {duration(round(ahead_s))} in the future: the clock of this machine, of the "
            "producer or of the broker is wrong",
            Where(cluster=cluster.name, topic=times[newest_ms]),
        )
    return "no record is in the future"


def lack_ids(topics: list[TopicEntry]) -> bool:
    """Whether a topic has no id at all, as below 2.8 without ZooKeeper."""
    return any(topic.ids == TopicIds() for topic in topics)


def _security(settings: Settings, name: str) -> str:
    security = settings.clusters[name].security
    tls = ["TLS"] if security.tls is not None else []
    sasl = [f"SASL {security.sasl.mechanism}"] if security.sasl is not None else []
    return " and ".join(tls + sasl) or "plain text"
