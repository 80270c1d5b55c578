"""A real broker that tests share, and how its cluster is found: by its ZooKeeper alone, or its address alone."""

from dataclasses import dataclass
from typing import Any

from resources.settings import ClusterSettings
from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBroker:
    """It runs. `zookeeper` is `host:port/chroot` where it keeps its cluster in one."""

    broker: RealBroker
    zookeeper: str | None

    @property
    def release(self) -> Release:
        """What brokers of this version can do."""
        return RELEASES[self.broker.version]

    def found(self, protocol: str = "PLAINTEXT", **settings: Any) -> ClusterSettings:
        """The settings of its cluster, as little as will do; `rest` are further ones."""
        if self.zookeeper:
            return ClusterSettings(zookeeper=self.zookeeper, **settings)
        return ClusterSettings(bootstrap=f"{self.broker.host}:{self.broker.ports[protocol]}", **settings)
