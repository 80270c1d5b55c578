"""Which cluster a registry is of: its dialect and its id."""

from kafka_io.registry.brokers import evidence_of_brokers
from kafka_io.registry.dialect import Dialect, Evidence
from kafka_io.registry.listing import let_by, names_under
from kafka_io.registry.modern import parse_cluster_id
from kafka_io.registry.paths import BROKER_IDS, CLUSTER_ID
from kafka_io.registry.session import Asking
from kafka_io.registry.topics import read_topics, topic_names


def read_dialect(asking: Asking) -> Dialect | None:
    """What the brokers tell; where none is up, what the topics tell; None when nothing does."""
    asking.sync()
    names_under(asking, BROKER_IDS)  # says so if this is no registry at all
    evidence = evidence_of_brokers(asking)
    if evidence.dialect is None:
        _look_at_topics(asking, evidence)
    return evidence.dialect


def read_cluster_id(asking: Asking) -> str | None:
    """The cluster's id; None before 0.10.1."""
    asking.sync()
    for path, content in asking.contents([CLUSTER_ID]):
        if content is not None:
            return parse_cluster_id(path, content.value)
    names_under(asking, BROKER_IDS)
    return None


def _look_at_topics(asking: Asking, evidence: Evidence) -> None:
    for _ in read_topics(asking, topic_names(asking), evidence, let_by):
        if evidence.dialect is not None:
            return
