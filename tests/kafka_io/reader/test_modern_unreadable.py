"""The range that begins with an unreadable batch is found with small fetches from the leader."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from kafka_io.errors import BrokerError
from kafka_io.messages.fetch import FetchResponse
from kafka_io.reader.modern_partition import ModernReader
from kafka_io.reader.reader import ReadSettings
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.kafka_io.conftest import OpenBrokers
from tests.kafka_io.reader.test_modern_partition import BATCH_BYTES, COUNT, FETCH, cut_at_size, log, naming, partition

CORRUPT_MESSAGE, GROUP_REFUSED, SESSION_UNKNOWN = 2, 30, 70


def damaged() -> Log:
    """A log whose batch [20, 30) has a wrong checksum."""
    broken = log()
    last, data = broken.entries[2]
    broken.entries[2] = (last, data[:-1] + bytes((data[-1] ^ 1,)))
    return broken


def fetch_sizes(cluster: FakeCluster) -> list[int]:
    """The size of each fetch that the brokers received."""
    requests: list[Any] = [received.request for received in cluster.heard(FETCH)]
    return [request.topics[0].partitions[0].partition_max_bytes for request in requests]


def test_a_damaged_batch_is_unreadable_up_to_the_next(open_brokers: OpenBrokers) -> None:
    broken = damaged()
    with FakeCluster(logs={0: broken}) as cluster:
        unreadable = partition(cluster, open_brokers).unreadable(20)
        assert (unreadable.start, unreadable.stop, unreadable.data) == (20, 30, broken.entries[2][1])
        assert partition(cluster, open_brokers).unreadable(30).stop == 30


@pytest.mark.parametrize(("fetch_bytes", "first"), [(BATCH_BYTES, BATCH_BYTES), (20 * 64 * 1024, 64 * 1024)])
def test_each_look_asks_for_little(fetch_bytes: int, first: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: damaged()}) as cluster:
        partition(cluster, open_brokers, size=fetch_bytes, most=20 * 64 * 1024).unreadable(20)
        assert set(fetch_sizes(cluster)) == {first}


def test_a_look_grows_until_the_batch_fits(open_brokers: OpenBrokers) -> None:
    broken = damaged()
    with FakeCluster(logs={0: broken}, offered={**EVERYTHING, FETCH: (2, 2)}) as cluster:
        cut_at_size(cluster)
        unreadable = partition(cluster, open_brokers, size=20).unreadable(20)
        assert (unreadable.start, unreadable.stop, unreadable.data) == (20, 30, broken.entries[2][1])
        assert fetch_sizes(cluster)[:2] == [20, len(unreadable.data)]


def test_a_batch_above_the_cap_is_unreadable_up_to_the_next(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}, offered={**EVERYTHING, FETCH: (2, 2)}) as cluster:
        cut_at_size(cluster)
        unreadable = partition(cluster, open_brokers, (0, 10), size=70, most=BATCH_BYTES - 1).unreadable(0)
        assert (unreadable.start, unreadable.stop) == (0, 10)


def failing_at(cluster: FakeCluster, offset: int, code: int) -> None:
    """Make the leader answer with an error to fetches at this offset."""
    answer = cluster.brokers[0].handlers[FETCH]

    def fetch(received: ReceivedRequest) -> FetchResponse:
        response: FetchResponse = answer(received)
        request: Any = received.request
        if request.topics[0].partitions[0].fetch_offset != offset:
            return response
        [topic] = response.responses
        partitions = (replace(topic.partitions[0], records=None, error_code=code),)
        return replace(response, responses=(replace(topic, partitions=partitions),))

    cluster.brokers[0].handlers[FETCH] = fetch


def test_offsets_that_the_broker_cannot_read_are_unreadable(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        failing_at(cluster, 20, CORRUPT_MESSAGE)
        assert partition(cluster, open_brokers).unreadable(20).stop == 21


def test_another_error_says_nothing_about_the_records(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        failing_at(cluster, 20, GROUP_REFUSED)
        with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
            partition(cluster, open_brokers).unreadable(20)


def test_the_leader_is_asked_also_if_it_names_a_nearer_replica(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: damaged()}) as cluster:
        naming(cluster, 1)
        assert partition(cluster, open_brokers).unreadable(20).stop == 30
        assert not [received for received in cluster.brokers[1].heard if received.api.key == FETCH]


@pytest.mark.parametrize("act", [lambda read: list(read.read()), lambda read: read.unreadable(0)])
def test_the_error_of_a_whole_answer_is_raised(act: Callable[[Any], object], open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        cluster.brokers[0].handlers[FETCH] = lambda _: FetchResponse(error_code=SESSION_UNKNOWN, responses=())
        with pytest.raises(BrokerError, match="FETCH_SESSION_ID_NOT_FOUND"):
            act(partition(cluster, open_brokers, (0, COUNT)))


def test_a_reader_closes_its_connections() -> None:
    metadata = Mock()
    ModernReader(metadata, ReadSettings()).close()
    metadata.close.assert_called_once_with()
