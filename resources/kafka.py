"""Opens the clusters and the schema registries that the settings name."""

from typing import TYPE_CHECKING

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.fetch_rate import FetchRate
from kafka_io.brokers.retry import Backoff
from kafka_io.cluster import opening as cluster_opening
from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import Where, error_context
from kafka_io.net.security import KERBEROS
from kafka_io.reader.reader import FetchSizes, ReadSettings
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.schema_registry.client import SchemaRegistry
from resources.extras import check_extra
from resources.settings.settings import Caps, ClusterSettings, Settings, SettingsError
from resources.suggestion import known_names

if TYPE_CHECKING:  # a load needs no producer
    from kafka_io.producer.message import Delivered
    from kafka_io.producer.producer import Producer


def open_producer(settings: Settings, name: str, *, compression: str = "none") -> "Producer[Delivered]":
    """A synchronous producer to a cluster of the settings; the caller closes it.

    Batches are not numbered, because brokers before 2.8 demand the right IDEMPOTENT_WRITE for it. If an answer is
    lost, a batch is sent again and may be stored twice.

    Raises:
        SettingsError: the settings name no such cluster.
        ExtraMissing: the login needs a package that is not installed.
        RegistryUnavailable: ZooKeeper does not answer.
        RegistryError: its ZooKeeper has no Kafka registry, or no broker is registered.
        Unsupported: the settings ask for TLS or SASL, but the cluster runs 0.7.
    """
    from kafka_io.producer import opening as producer_opening  # noqa: PLC0415 - see TYPE_CHECKING
    from kafka_io.producer.settings import ProducerSettings  # noqa: PLC0415

    cluster = _cluster_settings(settings, name)
    with error_context(Where(cluster=name)):
        return producer_opening.open_producer(
            zookeeper=cluster.zookeeper,
            bootstrap=cluster.bootstrap,
            generation=cluster.generation,
            security=cluster.security,
            settings=ProducerSettings(
                compression=compression, idempotent=False, retry_policy=_retry_policy(settings.caps)
            ),
        )


def open_cluster(settings: Settings, name: str) -> Cluster:
    """A connected cluster. The caller closes it.

    Raises:
        SettingsError: the settings have no cluster of that name.
        ExtraMissing: the login needs a package that is not installed.
        RegistryUnavailable: ZooKeeper does not answer.
        RegistryError: ZooKeeper has no Kafka registry.
    """
    cluster, caps = _cluster_settings(settings, name), settings.caps
    return cluster_opening.open_cluster(
        name,
        zookeeper=cluster.zookeeper,
        bootstrap=cluster.bootstrap,
        read_settings=ReadSettings(
            sizes=FetchSizes(fetch_bytes=caps.fetch_bytes, max_fetch_bytes=caps.max_fetch_bytes),
            limits=DecodeLimits(max_decompressed_bytes=caps.max_decompressed_bytes),
            retry_policy=_retry_policy(caps),
            committed=cluster.isolation == "committed",
            rack=cluster.rack,
            rate=FetchRate(bytes_per_s=caps.max_bytes_per_s, broker_bytes_per_s=caps.max_broker_bytes_per_s),
        ),
        generation=cluster.generation,
        security=cluster.security,
    )


def open_schema_registry(settings: Settings, name: str, *, waits: bool = False) -> SchemaRegistry:
    """A client of a registry of the settings. Nothing is sent yet, and nothing needs to be closed.

    With `waits` it waits for ids that the registry does not know yet, as long as the settings say.

    Raises:
        SettingsError: the settings have no registry of that name.
    """
    if name not in settings.registries:
        known = known_names("registries", name, settings.registries)
        raise SettingsError(f"there is no registry {name!r} in the settings{known}")
    wait_s = settings.caps.registry_wait_s if waits else 0.0
    return SchemaRegistry(name, settings.registries[name], retry_policy=_retry_policy(settings.caps), wait_s=wait_s)


def _retry_policy(caps: Caps) -> RetryPolicy:
    return RetryPolicy(timeout_s=caps.request_timeout_s, backoff=Backoff(attempts=caps.attempts))


def _cluster_settings(settings: Settings, name: str) -> ClusterSettings:
    if name not in settings.clusters:
        known = known_names("clusters", name, settings.clusters)
        raise SettingsError(f"there is no cluster {name!r} in the settings{known}")
    cluster = settings.clusters[name]
    if cluster.security.sasl and cluster.security.sasl.mechanism == KERBEROS:
        check_extra("kerberos", f"the login at the cluster {name} (GSSAPI)")
    return cluster
