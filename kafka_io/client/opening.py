"""Finding out what a cluster is, and opening it."""

from kafka_io.client.cluster import Cluster
from kafka_io.client.modern.bootstrap import parse_bootstrap
from kafka_io.client.modern.cluster import ModernCluster
from kafka_io.client.reading import Reading
from kafka_io.client.v07.cluster import Cluster07
from kafka_io.errors import Unsupported, Where, placing
from kafka_io.model import Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.registry.zookeeper import Registry


def open_cluster(
    name: str,
    *,
    zookeeper: str | None = None,
    bootstrap: str | None = None,
    reading: Reading | None = None,
    generation: Generation | None = None,
    security: Security = PLAINTEXT,
) -> Cluster:
    """The cluster that ZooKeeper (`host:port[,host:port][/chroot]`) or the brokers at `bootstrap` lead to.

    Whether it is of 0.7 is told by its nodes in ZooKeeper; what later brokers speak, they are asked when they are
    connected to. With both given, topics come from ZooKeeper and brokers are found through `bootstrap`.

    Raises:
        RegistryUnavailable: no ZooKeeper answers there.
        RegistryError: ZooKeeper has no Kafka registry there.
        Unsupported: security is asked of a cluster of 0.7.
        ValueError: neither is given, or an address is none.
    """
    reading = reading or Reading()
    brokers = parse_bootstrap(bootstrap) if bootstrap else ()
    if zookeeper is None:
        if not brokers:
            raise ValueError("a cluster is found through ZooKeeper or bootstrap brokers: neither is given")
        return ModernCluster(name, bootstrap=brokers, reading=reading, generation=generation, security=security)
    with placing(Where(cluster=name)):
        registry = Registry.open(zookeeper)
        try:
            v07 = generation is Generation.V07 if generation else registry.is_v07() is not False
        except BaseException:
            registry.close()
            raise
    if v07 and security != PLAINTEXT:
        registry.close()
        raise Unsupported(
            "0.7 has neither TLS nor SASL: its cluster cannot be reached as the settings ask", Where(cluster=name)
        )
    if v07:
        return Cluster07(name, registry, reading=reading)
    return ModernCluster(
        name, registry=registry, bootstrap=brokers, reading=reading, generation=generation, security=security
    )
