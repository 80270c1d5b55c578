"""Where the partitions of a plan are read from: small enough to travel to a worker, and complete."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from kafka_io.client.modern.reader import ModernReader
from kafka_io.client.reading import Reader, Reading
from kafka_io.client.v07.reader import Reader07
from kafka_io.model import Broker, Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.records import columns, logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Brokers of one cluster and how to read from them.

    In 0.7 the one broker that holds the partition, later any that know who leads it.

    `security` refers to secrets and holds none: each process reads them where it runs.

    >>> with open_cluster("local", bootstrap=bootstrap) as cluster:
    ...     source = cluster.source(BrokerPartition(None, 0))
    >>> Source.from_dict(source.as_dict()) == source
    True
    """

    cluster: str
    generation: Generation
    brokers: tuple[Broker, ...]
    security: Security = PLAINTEXT
    reading: Reading

    def open(self) -> Reader:
        """A reader; it connects when it is first used."""
        if self.generation is Generation.V07:
            [broker] = self.brokers
            return Reader07(broker, self.reading, cluster=self.cluster)
        return ModernReader(
            self.brokers, self.reading, cluster=self.cluster, generation=self.generation, security=self.security
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The inverse."""
        return cls(
            cluster=fields["cluster"],
            generation=Generation(fields["generation"]),
            brokers=tuple(Broker(**broker) for broker in fields["brokers"]),
            security=Security.from_dict(fields["security"]),
            reading=Reading.from_dict(fields["reading"]),
        )


def warm(generation: Generation) -> None:
    """Compile the kernels for this generation's records, or load them from numba's cache, ahead of the first."""
    if generation is Generation.V07:
        columns.warm()
    else:
        logs.warm()
