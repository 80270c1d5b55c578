"""The identity of a registry: its format, and the id of its cluster."""

from kafka_io.registry.brokers import evidence_of_brokers
from kafka_io.registry.dialect import FormatEvidence, RegistryFormat
from kafka_io.registry.listing import ignore, names_under
from kafka_io.registry.modern import parse_cluster_id
from kafka_io.registry.paths import BROKER_IDS, CLUSTER_ID
from kafka_io.registry.session import ZooKeeperQueries
from kafka_io.registry.topics import read_topics, topic_names


def read_dialect(queries: ZooKeeperQueries) -> RegistryFormat | None:
    """The format that the brokers show or, without a running broker, the topics; None if neither shows one."""
    queries.sync()
    names_under(queries, BROKER_IDS)  # raises an error if this is not a registry
    evidence = evidence_of_brokers(queries)
    if evidence.dialect is None:
        _add_topics(queries, evidence)
    return evidence.dialect


def read_cluster_id(queries: ZooKeeperQueries) -> str | None:
    """The cluster id; None before 0.10.1."""
    queries.sync()
    for path, content in queries.contents([CLUSTER_ID]):
        if content is not None:
            return parse_cluster_id(path, content.value)
    names_under(queries, BROKER_IDS)
    return None


def _add_topics(queries: ZooKeeperQueries, evidence: FormatEvidence) -> None:
    for _ in read_topics(queries, topic_names(queries), evidence, ignore):
        if evidence.dialect is not None:
            return
