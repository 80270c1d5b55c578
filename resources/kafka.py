"""Clusters as the settings name them."""

from kafka_io.client import opening
from kafka_io.client.cluster import Cluster
from kafka_io.client.reading import Reading
from resources.security_settings import security_of
from resources.settings import Settings, SettingsError


def open_cluster(settings: Settings, name: str) -> Cluster:
    """A connected cluster; the caller closes it.

    Raises:
        SettingsError: no cluster of that name.
        RegistryUnavailable: its ZooKeeper does not answer.
        RegistryError: its ZooKeeper has no Kafka registry.
    """
    if name not in settings.clusters:
        known = ", ".join(sorted(settings.clusters))
        raise SettingsError(f"there is no cluster {name!r} in the settings; there is: {known}")
    cluster = settings.clusters[name]
    return opening.open_cluster(
        name,
        zookeeper=cluster.zookeeper,
        bootstrap=cluster.bootstrap,
        reading=Reading.of(**settings.caps.of_reading, committed=cluster.isolation == "committed", rack=cluster.rack),
        generation=cluster.generation,
        security=security_of(cluster.security),
    )
