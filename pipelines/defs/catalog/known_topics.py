"""The topics that Dagster knows, by cluster: names in the storage of the Dagster instance, as dynamic partitions.

Definitions are made from these names, so a broker that is away never breaks the import of a code location. The sensor
of new topics adds names; only a person removes one.
"""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

import dagster as dg
from dagster._core.instance.ref import InstanceRef  # `dagster dev` without DAGSTER_HOME gives it to its code servers
from dagster._serdes import deserialize_value

from kafka_io.garbage import no_collections


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopics:
    """The names of a cluster that were in the instance when definitions were built.

    Args:
        names: all of them, in the order of their addition.
        deleted: those that the cluster had no longer when the sensor looked last.
        first_windows: for topics with complete hours or days, where the first one begins, in ms since 1970.
    """

    names: tuple[str, ...] = ()
    deleted: frozenset[str] = frozenset()
    first_windows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStorage:
    """The names of one cluster in an instance. Each method reads or writes the instance at once.

    Args:
        instance: the instance.
        prefix: the name of the definitions, `penstock` by default.
        cluster: the name of the cluster in the settings.
    """

    instance: dg.DagsterInstance
    prefix: str
    cluster: str

    @property
    def name(self) -> str:
        """The name under which Dagster stores the names of the topics."""
        return f"{self.prefix}/{self.cluster}"

    def known(self) -> KnownTopics:
        """The names as they are now."""
        names = self.instance.get_dynamic_partitions(self.name)
        first = (entry.split(" ", 1) for entry in self._stored("first_windows"))
        return KnownTopics(
            names=tuple(names),
            deleted=frozenset(self._stored("gone")),
            first_windows={topic: int(start_ms) for start_ms, topic in first},
        )

    def add(self, topics: Sequence[str]) -> None:
        """Add names. A name that is there already stays as it is."""
        self._add(self.name, topics)

    def mark_deleted(self, topics: Collection[str]) -> None:
        """Store which topics the cluster no longer has; forget the others."""
        stored = self._stored("gone")
        self._add(f"{self.name}/gone", sorted(set(topics) - stored))
        for name in stored - set(topics):
            self.instance.delete_dynamic_partition(f"{self.name}/gone", name)

    def add_first_windows(self, first_windows: Mapping[str, int]) -> None:
        """Store where the first complete hours or days of topics begin."""
        self._add(f"{self.name}/first_windows", [f"{start_ms} {topic}" for topic, start_ms in first_windows.items()])

    def waiting(self) -> list[str]:
        """The entries of topics that wait for a run, in the order of their addition."""
        return list(self.instance.get_dynamic_partitions(f"{self.name}/waiting"))

    def wait(self, entries: Sequence[str]) -> None:
        """Add entries of topics that wait for a run."""
        self._add(f"{self.name}/waiting", entries)

    def forget_waiting(self, entries: Collection[str]) -> None:
        """Remove entries whose runs were requested."""
        for entry in entries:
            self.instance.delete_dynamic_partition(f"{self.name}/waiting", entry)

    def _stored(self, kind: str) -> set[str]:
        return set(self.instance.get_dynamic_partitions(f"{self.name}/{kind}"))

    def _add(self, name: str, keys: Sequence[str]) -> None:
        if keys:
            self.instance.add_dynamic_partitions(name, list(keys))


ATTEMPT = "attempt-"
"""The prefix of `since` for a topic whose load failed and is tried again; the number of attempts follows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A topic that waits for a run.

    It is new, or a run left it to others: because it had more topics than the settings allow, or because the load of
    the topic failed for a time and other runs waited.

    Args:
        since: when it began to wait, or how often its load was tried. It is part of the run key, so a topic whose name
            was removed by a user and that is found again gets another run (fault O02).
        run_id: the run that left it; empty for a new topic.
        topic: the name of the topic.
    """

    since: str
    run_id: str = ""
    topic: str

    @classmethod
    def parse(cls, entry: str) -> Self:
        """Read an entry of the storage."""
        since, run_id, topic = entry.split(" ", 2)
        return cls(since=since, run_id=run_id.removeprefix("-"), topic=topic)

    def __str__(self) -> str:
        return f"{self.since} {self.run_id or '-'} {self.topic}"


def read_known(prefix: str, clusters: Collection[str]) -> dict[str, KnownTopics]:
    """The known topics of each cluster, from the instance of this process. Without an instance no topic is known."""
    with no_collections():  # Dagster imports the modules of its storage
        instance = _instance()
    if instance is None:
        return dict.fromkeys(clusters, KnownTopics())
    with instance:
        return {
            cluster: TopicStorage(instance=instance, prefix=prefix, cluster=cluster).known() for cluster in clusters
        }


def _instance() -> dg.DagsterInstance | None:
    if os.environ.get("DAGSTER_HOME"):
        return dg.DagsterInstance.get()
    for option, value in zip(sys.argv, sys.argv[1:], strict=False):
        if option == "--instance-ref":
            with suppress(Exception):
                return dg.DagsterInstance.from_ref(deserialize_value(value, InstanceRef))
    return None
