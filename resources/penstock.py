"""What runs and ticks of Dagster work with: the settings, and what they open. Nothing is opened before it is needed.

It is no resource of Dagster's Definitions: assets and sensors hold it themselves, so a project that has a resource with
any name can be merged with them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, PrivateAttr

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import TopicEntry
from kafka_io.zookeeper.listing import Listing
from kafka_io.zookeeper.zookeeper import ZooKeeper
from resources.kafka import open_cluster
from resources.machines.spark import open_session
from resources.settings.settings import Settings
from resources.stores.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHORT_TIMEOUT_S = 10.0
_SHORT_ATTEMPTS = 2


class PenstockResource(BaseModel):
    """Clusters, lake and Spark of the settings. Tests replace it with a subclass.

    Args:
        settings_file: the settings file, which each run and each tick reads again.
        inline: the settings themselves, instead of a file.
    """

    settings_file: str | None = None
    inline: Settings | None = None
    _snapshot: Settings | None = PrivateAttr(default=None)

    def fresh(self) -> Self:
        """A copy for one run or one tick, which has not read its settings yet.

        The code server keeps one object for all ticks and evaluates several at once, so the copy remembers the
        settings, and the object itself does not.
        """
        copy = self.model_copy()
        copy._snapshot = None  # noqa: SLF001 - it is this class
        return copy

    def settings(self) -> Settings:
        """The settings of this run or tick. The file is read once, so an edit does not give a run two settings.

        Raises:
            SettingsError: the file is missing or wrong.
        """
        if self._snapshot is None:
            self._snapshot = self.inline or Settings.load(self.settings_file)
        return self._snapshot

    def cluster(self, name: str) -> AbstractContextManager[Cluster]:
        """The cluster of this name, open until the end of a `with` block."""
        return open_cluster(self.settings(), name)

    def cluster_with_short_timeout(self, name: str) -> AbstractContextManager[Cluster]:
        """The same with few retries: Dagster stops a tick of a schedule or sensor after 60 s."""
        settings = self.settings().with_short_timeout(attempts=_SHORT_ATTEMPTS, timeout_s=_SHORT_TIMEOUT_S)
        return open_cluster(settings, name)

    def topics(self, name: str) -> Listing[TopicEntry]:
        """The topics of a cluster, those that the settings allow as entries, by name. Each call asks the cluster.

        Raises:
            RegistryError: the registry does not answer. The result is never an empty list instead.
        """
        rules = self.settings().rules(name)
        with self.cluster(name) as cluster:
            listing = cluster.topics()
        allowed = (topic for topic in listing.entries if rules.allows(topic.name))
        return replace(listing, entries=tuple(sorted(allowed, key=lambda topic: topic.name)))

    @contextmanager
    def topic_changes(self, name: str) -> Iterator[Callable[[float], bool]]:
        """A function that waits for a change of the cluster's topics and returns whether one came in so many seconds.

        The change is a ZooKeeper watch, which can be lost: it only shortens a wait (fault Z02). Without ZooKeeper the
        function returns False at once.

        Raises:
            RegistryUnavailable: ZooKeeper does not answer.
        """
        address = self.settings().clusters[name].zookeeper
        if address is None:
            yield lambda _: False
            return
        changed = threading.Event()
        with ZooKeeper.open(address) as zookeeper:
            zookeeper.watch(changed.set)
            yield changed.wait

    def lake(self) -> Lake:
        """The lake that holds the tables."""
        return Lake.of(self.settings())

    def session(self) -> "SparkSession":
        """Start Spark, or return the session that runs already."""
        return open_session(self.settings().spark)
