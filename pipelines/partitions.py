"""A topic is a dynamic partition of its group's asset. Its key is the encoded name: no two topics share one (O06)."""

from collections.abc import Sequence

import dagster as dg

from pipelines.group import TopicGroup
from resources import topic_names

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def known_keys(instance: dg.DagsterInstance, group: TopicGroup) -> list[str]:
    """The partitions of a group that Dagster knows, in the order of their adding."""
    return list(instance.get_dynamic_partitions(group.partitions_name))


def key_of(topic: str) -> str:
    """The partition key of a topic."""
    return topic_names.encode(topic)


def topic_of(key: str) -> str:
    """The topic of a partition key.

    Raises:
        ValueError: it is no such key.
    """
    return topic_names.decode(key)


def run_tags(keys: Sequence[str]) -> dict[str, str]:
    """The tags that make one run take all of `keys`, which follow each other in the order of their adding.

    Dagster takes the range from that order when the run starts. A key that another writer added in between is loaded
    with them, from its own cursor.
    """
    return {RANGE_START: keys[0], RANGE_END: keys[-1]}
