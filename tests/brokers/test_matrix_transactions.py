"""Transactions from 0.11 on: committed records become rows, aborted ones gaps, and an open one ends the load."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from pipelines.loading.outcome import TopicLoad
from tests.brokers.broker_lake import BrokerLake
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark, pytest.mark.matrix("transactions")]

WITH_TRANSACTIONS = [version for version in VERSIONS if RELEASES[version].transactions]
EACH = 300


def write(producer: Producer, topic: str, text: bytes) -> None:
    """The records of one transaction, in several batches."""
    for number in range(EACH):
        producer.produce(topic, text * (number % 5), b"%d" % number, 0)
    producer.flush()  # else an abort forgets what was not sent yet


@contextmanager
def transactions(broker: RealBroker, topic: str) -> Iterator[Producer]:
    """A committed, an aborted and a committed transaction, and an open one, which the end of the block commits."""
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
    """Error, rows, end and gaps of a topic of one partition."""
    [part] = load.partitions
    return load.error, load.rows, part.offsets.stop, dict(part.gaps)


# faults R21, R22, R23, B04
@pytest.mark.parametrize("version", WITH_TRANSACTIONS)
def test_rows_are_exactly_the_committed_records(
    version: str, shared: Callable[[str], SharedBroker], topic: str, open_lake: Callable[..., BrokerLake]
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic)
    lake = open_lake(shared_broker.cluster_settings())
    with transactions(shared_broker.broker, topic):
        ended = 3 * (EACH + 1)
        assert summary_of(lake.load(topic)) == (None, 2 * EACH, ended, {"aborted": EACH, "control": 3})
        assert lake.rows(topic) == read(shared_broker.broker, topic)
    assert summary_of(lake.load(topic)) == (None, EACH, ended + EACH + 1, {"control": 1})
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
        assert summary_of(lake.load(topic)) == (None, 4 * EACH, 4 * EACH + 3, {"control": 3})
        assert lake.rows(topic) == read(shared_broker.broker, topic, isolation="uncommitted")
