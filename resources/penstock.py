"""The one Dagster resource: the settings file, and what it opens. Nothing happens before a method is called."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dagster as dg
from pyspark.sql import SparkSession

from kafka_io.client.cluster import Cluster
from kafka_io.model import TopicEntry
from kafka_io.registry.zookeeper import Registry
from resources.kafka import open_cluster
from resources.lake import Lake
from resources.settings import Settings
from resources.spark import open_session

_GLIMPSE_S = 10.0


class PenstockResource(dg.ConfigurableResource["PenstockResource"]):
    """Clusters, lake and Spark as `penstock.toml` says. Tests put a subclass in its place."""

    settings_file: str | None = None

    def settings(self) -> Settings:
        """The settings, read afresh.

        Raises:
            SettingsError: the file is missing or wrong.
        """
        return Settings.load(self.settings_file)

    @contextmanager
    def cluster(self, name: str) -> Iterator[Cluster]:
        """The cluster of that name, open for the length of a `with` block."""
        with open_cluster(self.settings(), name) as cluster:
            yield cluster

    @contextmanager
    def glimpse(self, name: str) -> Iterator[Cluster]:
        """The same, asked with little patience: Dagster does not wait for a tick of a schedule for longer than 60 s."""
        with open_cluster(self.settings().hasty(attempts=2, timeout_s=_GLIMPSE_S), name) as cluster:
            yield cluster

    def topics(self, name: str) -> list[TopicEntry]:
        """The topics of a cluster that the settings allow, listed afresh, by name.

        Raises:
            RegistryError: the registry gives no answer; that is never an empty list.
        """
        rules = self.settings().rules(name)
        with self.cluster(name) as cluster:
            found = cluster.topics().found
        return sorted((topic for topic in found if rules.allows(topic.name)), key=lambda topic: topic.name)

    @contextmanager
    def changes(self, name: str) -> Iterator[Callable[[float], bool]]:
        """What waits so many seconds for a change of a cluster's topics since, and tells whether it came.

        A hint that shortens a wait (Z02). Where there is no ZooKeeper nothing tells, and it does not wait.

        Raises:
            RegistryUnavailable: the ZooKeeper does not answer.
        """
        zookeeper = self.settings().clusters[name].zookeeper
        if zookeeper is None:
            yield lambda _: False
            return
        changed = threading.Event()
        with Registry.open(zookeeper) as registry:
            registry.watch(changed.set)
            yield changed.wait

    def lake(self) -> Lake:
        """Where the tables are."""
        return Lake.of(self.settings())

    @property
    def session(self) -> Callable[[], SparkSession]:
        """What starts Spark, or gives the session that runs."""
        spark = self.settings().spark
        return lambda: open_session(spark)
