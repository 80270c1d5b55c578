"""What a generation gives to the producers: the partitions of a topic, and a way to send batches to them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_io.client.producer.transactions import Transactions
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError, Unsupported
from kafka_io.model import BrokerPartition
from kafka_io.records.build import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Records for one partition, numbered from 0 on; `since` is the first version of Produce that can carry them."""

    topic: str
    partition: BrokerPartition
    codec: int
    records: tuple[Record, ...]
    since: int = 0


class Transport(Closing):
    """Sends parcels. One thread at a time uses it."""

    transactions: Transactions | None = None

    @abstractmethod
    def targets(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions, sorted by broker, then partition; one at least.

        Raises:
            KafkaIOError: they cannot be found out.
        """

    @abstractmethod
    def send(self, parcels: Sequence[Parcel]) -> list[int | KafkaIOError | None]:
        """Send parcels, no two for the same partition.

        For each, the offset of its first record, None where the broker does not tell, or what went wrong.
        """

    def begin_transactions(self) -> None:
        """Make the transactional id ours, if that was not done.

        Raises:
            Unsupported: there are no transactions.
            KafkaIOError: the brokers do not let us.
        """
        raise Unsupported("transactions need a transactional_id, and brokers from 0.11 on")
