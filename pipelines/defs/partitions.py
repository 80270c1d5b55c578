"""Partitions of a group's asset: each topic is one dynamic partition.

The key is the encoded topic name, so two topics never share a key (fault O06).
"""

from collections.abc import Sequence

import dagster as dg

from pipelines.defs.topic_group import TopicGroup
from resources import topic_names

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def known_keys(instance: dg.DagsterInstance, group: TopicGroup) -> list[str]:
    """The partition keys of a group that Dagster knows, in the order in which they were added."""
    return list(instance.get_dynamic_partitions(group.partitions_name))


def key_of(topic: str) -> str:
    """The partition key of a topic."""
    return topic_names.encode(topic)


def topic_of(key: str) -> str:
    """The topic of a partition key.

    Raises:
        ValueError: the text is not a partition key.
    """
    return topic_names.decode(key)


def run_tags(keys: Sequence[str]) -> dict[str, str]:
    """The tags that make one run take all of `keys`, which must follow each other in the order of their addition.

    Dagster resolves the range when the run starts. If another writer adds a key inside the range before that, the run
    loads it too, from its own cursor.
    """
    return {RANGE_START: keys[0], RANGE_END: keys[-1]}
