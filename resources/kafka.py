"""Clusters as the settings name them."""

from kafka_io.client.cluster import Cluster
from kafka_io.client.link import Patience
from kafka_io.client.retry import Backoff
from resources.settings import Settings, SettingsError


def open_cluster(settings: Settings, name: str) -> Cluster:
    """A connected cluster; the caller closes it.

    Raises:
        SettingsError: no cluster of that name, or none that can be reached by what is set.
        RegistryUnavailable: its ZooKeeper does not answer.
    """
    if name not in settings.clusters:
        known = ", ".join(sorted(settings.clusters))
        raise SettingsError(f"there is no cluster {name!r} in the settings; there is: {known}")
    zookeeper = settings.clusters[name].zookeeper
    if zookeeper is None:
        raise SettingsError(f"clusters.{name}.zookeeper is missing: clusters of 0.7 are found through ZooKeeper")
    backoff = Backoff(attempts=settings.caps.attempts)
    patience = Patience(timeout_s=settings.caps.request_timeout_s, backoff=backoff)
    return Cluster.open(name, zookeeper=zookeeper, patience=patience)
