"""Sources of offsets by their names: `kind:what`, as `penstock offsets import --from` takes them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kafka_io.client.cluster import Cluster
from kafka_io.client.offsets import GroupOffsets, Storage, group_offsets
from pipelines.offsets.camus import camus_source
from pipelines.offsets.hadoop import hadoop_source
from pipelines.offsets.handed import Handed, Source
from pipelines.offsets.portable import FileSource
from pipelines.offsets.spark import SparkSource


class GroupSource:
    """See Source. A consumer group, wherever it keeps its offsets."""

    def __init__(self, offsets: GroupOffsets, group: str) -> None:
        self._offsets = offsets
        self._group = group

    def __call__(self, topic: str) -> Handed:
        """See Source."""
        return self._offsets.fetch(self._group, [topic]).get(topic, {})


KINDS: Mapping[str, Callable[[Cluster, str], Source]] = {
    "group": lambda cluster, name: GroupSource(group_offsets(cluster, Storage.COORDINATOR), name),
    "zookeeper": lambda cluster, name: GroupSource(group_offsets(cluster, Storage.ZOOKEEPER), name),
    "hadoop": lambda cluster, path: hadoop_source(cluster, Path(path)),
    "camus": lambda cluster, path: camus_source(cluster, Path(path)),
    "spark": lambda _cluster, path: SparkSource(Path(path)),
    "file": lambda cluster, path: FileSource(Path(path), cluster=cluster.name),
}


def parse_source(text: str) -> Callable[[Cluster], Source]:
    """What `kind:what` means, for a cluster that is opened later.

    Raises:
        ValueError: there is no such kind, or nothing is named.
    """
    kind, _, what = text.partition(":")
    if kind not in KINDS or not what:
        raise ValueError(f"{text!r} is no source: give one of {', '.join(f'{known}:...' for known in KINDS)}")
    return lambda cluster: KINDS[kind](cluster, what)
