"""A topic is one dynamic partition. Its key is `<cluster>/<encoded topic>`, so no two topics share one (O06)."""

import dagster as dg

from resources import topic_names

NAME = "topics"
topics = dg.DynamicPartitionsDefinition(name=NAME)

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def known_keys(instance: dg.DagsterInstance) -> list[str]:
    """The partitions that Dagster knows, in the order of their adding."""
    return list(instance.get_dynamic_partitions(NAME))


def key_of(cluster: str, topic: str) -> str:
    """The partition key of a topic."""
    return f"{cluster}/{topic_names.encode(topic)}"


def cluster_of(key: str) -> str:
    """The cluster of a partition key."""
    return key.partition("/")[0]


def parse_key(key: str) -> tuple[str, str]:
    """Cluster and topic of a partition key.

    Raises:
        ValueError: it is no such key.
    """
    cluster, _, name = key.partition("/")
    if not name:
        raise ValueError(f"{key!r} is not <cluster>/<topic>")
    return cluster, topic_names.decode(name)


def run_tags(keys: list[str]) -> dict[str, str]:
    """The tags that make one run take all of `keys`, which follow each other in the order of their adding.

    Dagster takes the range from that order when the run starts. A key that another writer added in between is loaded
    with them, from its own cursor.
    """
    return {RANGE_START: keys[0], RANGE_END: keys[-1]}
