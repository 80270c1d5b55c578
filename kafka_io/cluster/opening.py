"""Opens a cluster of any generation."""

from contextlib import ExitStack

from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.cluster.cluster import Cluster
from kafka_io.cluster.modern_cluster import ModernCluster
from kafka_io.errors import Unsupported, Where, error_context
from kafka_io.model import Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source


def open_cluster(
    name: str,
    *,
    zookeeper: str | None = None,
    bootstrap: str | None = None,
    read_settings: ReadSettings | None = None,
    generation: Generation | None = None,
    security: Security = PLAINTEXT,
) -> Cluster:
    """Open a cluster by the address of its ZooKeeper (`host:port[,host:port][/chroot]`) or of `bootstrap` brokers.

    The nodes in ZooKeeper show whether the cluster runs 0.7. Later brokers report their protocol when the first
    connection is opened. If both addresses are given, topics come from ZooKeeper, and brokers from `bootstrap`.

    Raises:
        RegistryUnavailable: no ZooKeeper answers there.
        RegistryError: ZooKeeper has no nodes of Kafka there.
        Unsupported: the cluster runs 0.7, and `security` asks for TLS or SASL.
        ValueError: no address is given, or one is not valid.
    """
    read_settings = read_settings or ReadSettings()
    if zookeeper is None and not bootstrap:
        raise ValueError("the cluster has no address: give the address of ZooKeeper, or of bootstrap brokers")
    brokers = parse_bootstrap(bootstrap) if bootstrap else ()
    client = None
    with ExitStack() as closing, error_context(Where(cluster=name)):
        if zookeeper is not None:
            from kafka_io.zookeeper.zookeeper import ZooKeeper  # noqa: PLC0415 - many clusters have no ZooKeeper

            client = closing.enter_context(ZooKeeper.open(zookeeper))
            if client.is_v07(generation):
                if security != PLAINTEXT:
                    raise Unsupported("0.7 has neither TLS nor SASL: remove `security` from the cluster's settings")
                from kafka_io.cluster.v07_cluster import Cluster07  # noqa: PLC0415 - it imports numba

                closing.pop_all()
                return Cluster07(name, client, read_settings=read_settings)
        closing.pop_all()
    given = Source(
        cluster=name,
        generation=generation or Generation.MODERN,
        brokers=brokers,
        security=security,
        read_settings=read_settings,
        refuses_newer=generation is not None,
    )
    return ModernCluster(given, client)
