"""Where the brokers are, as ZooKeeper last told: without it one goes on with those that are known."""

from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.reader import open_brokers
from kafka_io.client.modern.simple import ModernFetching
from kafka_io.client.reading import Reading
from kafka_io.client.simple import SimpleConsumer
from kafka_io.client.v07.simple import Fetching07
from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.model import Broker, BrokerPartition
from kafka_io.net.security import PLAINTEXT
from kafka_io.registry.dialect import Dialect
from kafka_io.registry.membership import Membership

_NO_WAIT_MS = 0  # fetchers ask many brokers by turns: none of them may keep the others waiting


class Directory:
    """Opens consumers of a cluster's brokers. Any thread may ask."""

    def __init__(self, membership: Membership, dialect: Dialect, reading: Reading) -> None:
        self._membership = membership
        self._dialect = dialect
        self._reading = reading
        self._known: tuple[Broker, ...] = ()

    def open(self) -> SimpleConsumer:
        """A consumer of all brokers; it asks where they are when it needs one."""
        if self._dialect is Dialect.V07:
            return SimpleConsumer(Fetching07(self._find, self._reading))
        return SimpleConsumer(ModernFetching(self._brokers, self._reading, max_wait_ms=_NO_WAIT_MS))

    def _brokers(self) -> Brokers:
        brokers = self._listed()
        if not brokers:
            raise RegistryError("no broker is registered")
        return open_brokers(brokers, self._reading, cluster=None, security=PLAINTEXT)

    def _find(self, partition: BrokerPartition) -> Broker:
        for broker in self._listed():
            if broker.id == partition.broker:
                return broker
        raise RegistryError("the broker is not registered in ZooKeeper: it is down, or just gone")

    def _listed(self) -> tuple[Broker, ...]:
        try:
            self._known = self._membership.brokers().found
        except RegistryUnavailable:
            if not self._known:
                raise
        return self._known
