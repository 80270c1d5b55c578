"""Transactions: committed records become rows, aborted records become gaps, and a load ends before an open one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from pipelines.reports.outcome import TopicLoad
from tests.brokers.broker_lake import BrokerLake
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark, pytest.mark.matrix("transactions")]

WITH_TRANSACTIONS = [version for version in VERSIONS if RELEASES[version].transactions]
TRANSACTION_RECORDS = 300


def write(producer: Producer, topic: str, text: bytes) -> None:
    """Write the records of one transaction in several batches."""
    for number in range(TRANSACTION_RECORDS):
        producer.produce(topic, text * (number % 5), b"%d" % number, 0)
    producer.flush()  # otherwise an abort drops the records that are not sent yet


@contextmanager
def transactions(broker: RealBroker, topic: str) -> Iterator[Producer]:
    """Write four transactions: committed, aborted, committed, and open. The end of the block commits the open one."""
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "batch.num.messages": 50}
    producer = Producer({**settings, "compression.type": "lz4"})
    producer.init_transactions()
    for text, end in (
        (b"kept", producer.commit_transaction),
        (b"dropped", producer.abort_transaction),
        (b"kept too", producer.commit_transaction),
    ):
        producer.begin_transaction()
        write(producer, topic, text)
        end()
    producer.begin_transaction()
    write(producer, topic, b"late")
    yield producer
    producer.commit_transaction()


def summary_of(load: TopicLoad) -> tuple[str | None, int, int, dict[str, int]]:
    """Error, rows, end offset and gaps of the load of a topic with one partition."""
    [partition] = load.partitions
    return load.error, load.rows, partition.offsets.stop, dict(partition.gaps)


# faults R21, R22, R23, B04
@pytest.mark.parametrize("version", WITH_TRANSACTIONS)
def test_rows_are_exactly_the_committed_records(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic)
    lake = open_lake(shared_broker.cluster_settings())
    with transactions(shared_broker.broker, topic):
        end = 3 * (TRANSACTION_RECORDS + 1)
        assert summary_of(lake.load(topic)) == (
            None,
            2 * TRANSACTION_RECORDS,
            end,
            {"aborted": TRANSACTION_RECORDS, "control": 3},
        )
        assert lake.rows(topic) == read(shared_broker.broker, topic)
    assert summary_of(lake.load(topic)) == (None, TRANSACTION_RECORDS, end + TRANSACTION_RECORDS + 1, {"control": 1})
    assert lake.rows(topic) == read(shared_broker.broker, topic)


# fault R22
@pytest.mark.parametrize("version", WITH_TRANSACTIONS)
def test_isolation_uncommitted_reads_all_records_at_once(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic)
    lake = open_lake(shared_broker.cluster_settings(isolation="uncommitted"))
    with transactions(shared_broker.broker, topic):
        assert summary_of(lake.load(topic)) == (
            None,
            4 * TRANSACTION_RECORDS,
            4 * TRANSACTION_RECORDS + 3,
            {"control": 3},
        )
        assert lake.rows(topic) == read(shared_broker.broker, topic, isolation="uncommitted")
