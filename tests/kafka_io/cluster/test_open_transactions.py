"""A transaction that holds records back is described as far as the brokers know it (fault N06)."""

import pytest

from kafka_io.cluster.open_transactions import OpenTransaction, find_open_transactions
from kafka_io.messages.describe_producers import (
    DescribedProducersPartition,
    DescribedProducersTopic,
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
)
from kafka_io.model import TopicPartition
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.build import Record, record_batch
from kafka_io.records.layout import TRANSACTIONAL
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.kafka_io.conftest import OpenBrokers

NOW_MS = 1_800_000_000_000
BEGAN_MS = 1_700_000_000_000
CLICKS = TopicPartition("clicks", 0)
PRODUCERS = DescribeProducersRequest.API
OFFERED = {**EVERYTHING, PRODUCERS.key: PRODUCERS.versions}


def hanging() -> Log:
    """A record without a transaction, and one of a transaction that began at offset 1 and never ended."""
    first = record_batch([Record(offset=0, value=b"a", timestamp=BEGAN_MS - 1000)])
    second = record_batch(
        [Record(offset=1, value=b"b", timestamp=BEGAN_MS)], producer=(9, 0, 0), attributes=TRANSACTIONAL
    )
    return Log(entries=[(0, first), (1, second)], end=2, stable=1)


def described(*producers: tuple[int, int], error: int = 0) -> DescribeProducersResponse:
    """The answer with these producers: their ids and the first offsets of their transactions."""
    states = tuple(
        ProducerState(producer_id=id_, producer_epoch=0, coordinator_epoch=0, current_txn_start_offset=offset)
        for id_, offset in producers
    )
    partition = DescribedProducersPartition(partition_index=0, error_code=error, active_producers=states)
    return DescribeProducersResponse(topics=(DescribedProducersTopic(name="clicks", partitions=(partition,)),))


@pytest.mark.parametrize(
    ("answer", "producer_id"),
    [
        (described((7, -1), (8, 5), (9, 1)), 9),  # one without a transaction, and one whose transaction is younger
        (described((7, -1)), None),
        (described(error=29), None),  # the client is not authorized
        (DescribeProducersResponse(topics=()), None),
    ],
)
def test_the_oldest_open_transaction_has_its_offset_time_and_producer(
    answer: DescribeProducersResponse, producer_id: int | None, open_brokers: OpenBrokers
) -> None:
    with FakeCluster(logs={0: hanging()}, offered=OFFERED) as cluster:
        cluster.brokers[0].handlers[PRODUCERS.key] = lambda _: answer
        transactions = find_open_transactions(open_brokers(cluster), {CLICKS: 1}, ReadSettings(), now_ms=NOW_MS)
        assert transactions == {CLICKS: OpenTransaction(first_offset=1, began_ms=BEGAN_MS, producer_id=producer_id)}


def test_brokers_before_2_8_report_no_producer(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: hanging()}) as cluster:
        transactions = find_open_transactions(open_brokers(cluster), {CLICKS: 1}, ReadSettings(), now_ms=NOW_MS)
        assert transactions == {CLICKS: OpenTransaction(first_offset=1, began_ms=BEGAN_MS)}


def test_an_unreachable_broker_leaves_all_but_the_offset_unknown(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: hanging()}, offered=OFFERED) as cluster:
        metadata = open_brokers(cluster)
        metadata.all_topics()
        for broker in cluster.brokers:
            broker.close()
        transactions = find_open_transactions(metadata, {CLICKS: 1}, ReadSettings(), now_ms=NOW_MS)
        assert transactions == {CLICKS: OpenTransaction(first_offset=1)}
