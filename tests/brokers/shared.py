"""A real broker that tests share, and settings that find its cluster: only ZooKeeper, or only a bootstrap address."""

from dataclasses import dataclass
from typing import Any

from resources.settings import ClusterSettings
from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBroker:
    """A running broker. `zookeeper` is `host:port/chroot`; None in KRaft mode."""

    broker: RealBroker
    zookeeper: str | None

    @property
    def release(self) -> Release:
        """The features of the broker's version."""
        return RELEASES[self.broker.version]

    def cluster_settings(self, protocol: str = "PLAINTEXT", **settings: Any) -> ClusterSettings:
        """The shortest settings that find the cluster, with further ones from `settings`."""
        if self.zookeeper:
            return ClusterSettings(zookeeper=self.zookeeper, **settings)
        return ClusterSettings(bootstrap=f"{self.broker.host}:{self.broker.ports[protocol]}", **settings)
