"""The interface between producers and one generation of brokers: list a topic's partitions, and send batches."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError, Unsupported
from kafka_io.model import BrokerPartition
from kafka_io.producer.transactions import ProducerTransactions
from kafka_io.records.build import Record

NO_TRANSACTIONS = "transactions need a transactional_id in the ProducerSettings, and brokers from 0.11 on"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerBatch:
    """Records for one partition, numbered from 0; `since` is the first version of Produce that can carry them."""

    topic: str
    partition: BrokerPartition
    codec: int
    records: tuple[Record, ...]
    since: int = 0


class Transport(Closing):
    """Sends batches to brokers. Only one thread at a time uses it."""

    transactions: ProducerTransactions | None = None

    @abstractmethod
    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions, sorted by broker, then partition; at least one.

        Raises:
            KafkaIOError: the partitions are not known.
        """

    @abstractmethod
    def send(self, batches: Sequence[ProducerBatch]) -> list[int | KafkaIOError | None]:
        """Send batches to different partitions.

        Returns for each batch the offset of its first record, None if the broker does not report it, or the error.
        """

    def wait_until_registered(self, topic: str, partitions: Iterable[BrokerPartition], *, timeout_s: float) -> None:
        """Wait until the brokers of these partitions have registered the topic, see Producer: only 0.7 needs it."""

    def begin_transactions(self) -> None:
        """Claim the transactional id, unless this producer has it already.

        Raises:
            Unsupported: there are no transactions.
            KafkaIOError: the brokers refused.
        """
        raise Unsupported(NO_TRANSACTIONS)
