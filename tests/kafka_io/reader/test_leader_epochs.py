"""A range is read from the leader of its plan, or from a later one that has lost nothing of the range (KIP-320)."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafka_io.errors import LeaderChanged, LeaderMoved
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.modern_partition import ModernReader
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.records.build import log_messages
from kafka_io.records.header_scan import scan_headers
from kafka_io.records.layout import BATCH_EPOCH_AT
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.records import holding
from tests.kafka_io.conftest import ATTEMPTS, OpenBrokers

FETCH, METADATA = FetchRequest.API.key, MetadataRequest.API.key
FENCED, UNKNOWN = 74, 75


def led(*epochs: int, epoch: int, leader: int = 0, incarnation: str = "first") -> Log:
    """A log of five records for each of these epochs, whose leader has `epoch`."""
    log = holding(0, 5 * len(epochs), epoch=epoch, incarnation=incarnation)
    log.entries = [
        (last, data[:BATCH_EPOCH_AT] + struct.pack(">i", number) + data[BATCH_EPOCH_AT + 4 :])
        for (last, data), number in zip(log.entries, epochs, strict=True)
    ]
    return replace(log, leader=leader)


def values(
    cluster: FakeCluster, open_brokers: OpenBrokers, *, epoch: int, stop: int = 10, others: Sequence[int] = ()
) -> Any:
    """The values of the first records of partitions, for plans of these epochs."""
    planned = [
        PlannedRange("clicks", OffsetRange(BrokerPartition(None, number), 0, stop), incarnation="", epoch=epoch)
        for number, epoch in enumerate((epoch, *others))
    ]
    reader = ModernReader(open_brokers(cluster), ReadSettings())
    return [
        [value for decoded in batches for value in decoded.batch["value"].to_pylist()]
        for batches in reader.read(planned)
    ]


def deposed(cluster: FakeCluster) -> Log:
    """Broker 0 was deposed and does not know it: it describes itself as the leader, and gives other records."""
    old = led(5, 5, epoch=5, incarnation="lost")

    def with_old(handler: Any) -> Any:
        def answer(received: ReceivedRequest) -> object:
            present = cluster.logs
            cluster.logs = dict.fromkeys(present, old)
            try:
                return handler(received)
            finally:
                cluster.logs = present

        return answer

    broker = cluster.brokers[0]
    for api in (FETCH, METADATA):
        broker.handlers[api] = with_old(broker.handlers[api])
    return old


@pytest.mark.parametrize("others", [(), (6,)])
def test_a_deposed_leader_that_still_answers_is_not_read(others: Sequence[int], open_brokers: OpenBrokers) -> None:
    new = led(5, 6, epoch=6, leader=1, incarnation="new")  # fault A03
    with FakeCluster(logs={0: new, 1: new}) as cluster:
        deposed(cluster)
        read = values(cluster, open_brokers, epoch=6, others=others)
        assert read == (1 + len(others)) * [[f"new {number}".encode() for number in range(10)]]


def test_a_range_is_not_fetched_together_with_one_of_an_older_plan(open_brokers: OpenBrokers) -> None:
    new = led(5, 6, epoch=6, leader=1, incarnation="new")  # fault A03
    with FakeCluster(logs={0: new, 1: new}) as cluster:
        deposed(cluster)
        assert values(cluster, open_brokers, epoch=5, others=(6,))[1] == [
            f"new {number}".encode() for number in range(10)
        ]


def test_metadata_that_stay_older_than_the_plan_are_refused_after_all_attempts(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: led(5, 5, epoch=5)}) as cluster:  # fault A03
        with pytest.raises(LeaderMoved, match="epoch 5, and not yet the one with epoch 6"):
            values(cluster, open_brokers, epoch=6)
        assert len(cluster.heard(METADATA)) == ATTEMPTS
        assert not cluster.heard(FETCH)
        assert len(values(cluster, open_brokers, epoch=-1)[0]) == 10  # nobody knows the epoch of the plan


def test_a_range_with_records_of_a_later_leader_must_be_planned_again(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: led(5, 6, epoch=6)}) as cluster:  # fault A03
        with pytest.raises(LeaderChanged, match="with epoch 5, but has records of the leader with epoch 6"):
            values(cluster, open_brokers, epoch=5)
        assert len(values(cluster, open_brokers, epoch=5, stop=5)[0]) == 5
        assert len(values(cluster, open_brokers, epoch=6)[0]) == 10


def test_a_server_that_stores_other_epochs_than_it_reports_is_read(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: led(40, 41, epoch=5)}) as cluster:  # fault A03
        assert len(values(cluster, open_brokers, epoch=5)[0]) == 10


@pytest.mark.parametrize("code", [FENCED, UNKNOWN])
def test_a_fetch_states_its_epoch_and_asks_for_metadata_if_the_broker_knows_another(
    code: int, open_brokers: OpenBrokers
) -> None:  # faults B02, A03
    with FakeCluster(logs={0: led(5, 5, epoch=5)}) as cluster:
        fetch = cluster.brokers[0].handlers[FETCH]

        def refused(received: ReceivedRequest) -> object:
            answer: Any = fetch(received)
            request: Any = received.request
            if request.topics[0].partitions[0].current_leader_epoch == 6:
                return answer
            cluster.logs[0].epoch = 6
            [topic] = answer.responses
            rows = tuple(replace(row, error_code=code, records=b"") for row in topic.partitions)
            return replace(answer, responses=(replace(topic, partitions=rows),))

        cluster.brokers[0].handlers[FETCH] = refused
        assert len(values(cluster, open_brokers, epoch=5)[0]) == 10
        assert len(cluster.heard(METADATA)) == 2


def test_a_header_scan_finds_the_largest_epoch_before_the_requested_stop() -> None:
    data = b"".join(entry for _, entry in led(7, 3, 9, epoch=9).entries)
    assert [scan_headers(data, RequestedOffsets(start=0, stop=stop)).max_epoch for stop in (5, 10, 11, 15)] == [
        7,
        7,
        9,
        9,
    ]
    assert scan_headers(log_messages([], magic=1), RequestedOffsets(start=0)).max_epoch == -1
