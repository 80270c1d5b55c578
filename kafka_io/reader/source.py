"""The source of a plan's partitions: a small value that a worker receives, with all that it needs to read them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from kafka_io import stopping
from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.negotiation import Connector
from kafka_io.errors import Unsupported, Where
from kafka_io.model import Broker, Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.reader.reader import PausableReader, ReadSettings

_MAX_BESIDE_RECORDS = 1024 * 1024  # bytes of an answer that are not records


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Brokers of one cluster, and how to connect to them and read from them.

    In 0.7 this is the one broker that holds the partition. From 0.8 on any brokers will do: they know the leaders.

    `cluster_id` is the id of the cluster, if it is known: answers of another cluster behind the same addresses are
    refused. `security` refers to secrets but does not contain them: each process reads them where it runs.

    `refuses_newer` says that the user gave `generation`, so that newer brokers are refused (fault P15). If it
    was detected, newer brokers are not refused, because in a rolling upgrade some brokers are newer.

    >>> import msgspec
    >>> with open_cluster("local", bootstrap=bootstrap) as cluster:
    ...     source = cluster.source(BrokerPartition(None, 0))
    >>> msgspec.json.decode(msgspec.json.encode(source), type=Source) == source
    True
    """

    cluster: str | None
    generation: Generation
    brokers: tuple[Broker, ...]
    security: Security = PLAINTEXT
    read_settings: ReadSettings
    cluster_id: str = ""
    refuses_newer: bool = False

    def open(self) -> PausableReader:
        """A reader, which connects when it is first used."""
        if self.generation is Generation.V07:
            from kafka_io.reader.v07.reader import Reader07  # noqa: PLC0415 - numba is slow to import, plans need none

            [broker] = self.brokers
            return Reader07(broker, self.read_settings, cluster=self.cluster)
        from kafka_io.reader.modern_partition import ModernReader  # noqa: PLC0415 - as above

        return ModernReader(self.connect(), self.read_settings)

    def connect(
        self, retry_policy: RetryPolicy | None = None, *, sleep: Callable[[float], None] = stopping.sleep
    ) -> ClusterMetadata:
        """The cluster's brokers, over connections of the caller's own; nothing is connected yet.

        Args:
            retry_policy: used instead of the one in the read settings.
            sleep: waits between two attempts.

        Raises:
            Unsupported: the cluster runs 0.7, whose brokers do not know each other.
            TlsFailed: the files of `security` cannot be used.
        """
        where = Where(cluster=self.cluster)
        if self.generation is Generation.V07:
            raise Unsupported("brokers of 0.7 have no metadata of their cluster", where)
        retry_policy = retry_policy or self.read_settings.retry_policy
        connector = Connector(
            timeout_s=retry_policy.timeout_s,
            # A frame that claims more than a fetch can ask for is refused before memory is allocated (fault W06).
            max_answer_bytes=self.read_settings.sizes.max_fetch_bytes + _MAX_BESIDE_RECORDS,
            generation=self.generation,
            refuses_newer=self.refuses_newer,
            security=self.security,
            fetch_rate=self.read_settings.rate,
        )
        return ClusterMetadata(
            self.brokers, connector, retry_policy.backoff, where=where, sleep=sleep, expected_cluster_id=self.cluster_id
        )


@cache
def warm(generation: Generation) -> None:
    """Compile the kernels for this generation's records, or load them from numba's cache; once in each process."""
    from kafka_io.records import decoder  # noqa: PLC0415 - as in Source.open
    from kafka_io.records.v07 import decoder as v07_decoder  # noqa: PLC0415

    (v07_decoder if generation is Generation.V07 else decoder).warm()
