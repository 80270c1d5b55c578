"""A real broker that tests share, and settings that find its cluster: only ZooKeeper, or only a bootstrap address."""

from dataclasses import dataclass
from typing import Any

from resources.settings.settings import ClusterSettings
from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES, Release

_COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBroker:
    """A running broker. `zookeeper` is `host:port/chroot`; None in KRaft mode."""

    broker: RealBroker
    zookeeper: str | None

    @property
    def release(self) -> Release:
        """The features of the broker's version."""
        return RELEASES[self.broker.version]

    def create_internal_topics(self) -> None:
        """Create the topics of the coordinators on this broker.

        Otherwise the broker creates each one when a client first needs it. If a second broker of a test is in the
        cluster then, the topic may get its only replica there, and have no leader for all later tests.
        """
        self.broker.create_topic("__consumer_offsets", config=_COMPACTED)
        if self.release.transactions:
            self.broker.create_topic("__transaction_state", config=_COMPACTED)

    def cluster_settings(self, protocol: str = "PLAINTEXT", **settings: Any) -> ClusterSettings:
        """The shortest settings that find the cluster, with further ones from `settings`."""
        if self.zookeeper:
            return ClusterSettings(zookeeper=self.zookeeper, **settings)
        return ClusterSettings(bootstrap=f"{self.broker.host}:{self.broker.ports[protocol]}", **settings)
