"""The beginnings of many small ranges come in one answer; whatever is wrong with it, each offset is read once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kafka_io.brokers.cluster_metadata import LEADER, ClusterMetadata, topic_id_text
from kafka_io.errors import Corrupt, NetworkError, OffsetOutOfRange, TopicReplaced
from kafka_io.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.modern_partition import ModernReader
from kafka_io.reader.reader import FetchSizes, PlannedRange, ReadSettings
from kafka_io.records.build import Record, record_batch
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import CLOSE, EVERYTHING, FakeCluster, Log
from tests.kafka_io.conftest import ATTEMPTS, OpenBrokers

FETCH, METADATA = FetchRequest.API.key, MetadataRequest.API.key
LIFE, OTHER_LIFE = UUID(int=7), UUID(int=8)
COUNT, PARTITIONS = 20, 12


def small_log(number: int, **changes: Any) -> Log:
    """Two batches of ten records; each value names the partition and the offset."""
    entries = [
        (base + 9, record_batch([Record(offset=base + i, value=b"%d:%d" % (number, base + i)) for i in range(10)]))
        for base in (0, 10)
    ]
    return replace(Log(entries=entries, end=COUNT), **changes)


LOG_BYTES = sum(len(data) for _, data in small_log(PARTITIONS - 1).entries)
Changed = Callable[[FetchPartitionResponse], FetchPartitionResponse]


def logs(**by_number: Log) -> dict[int, Log]:
    """The logs of all partitions, some of them other ones: `p3=...`."""
    return {number: by_number.get(f"p{number}", small_log(number)) for number in range(PARTITIONS)}


def ranges(spans: Mapping[int, tuple[int, int]] | None = None, *, incarnation: str = "unknown") -> list[PlannedRange]:
    """A range of each partition, by default the whole log."""
    by_number = spans or dict.fromkeys(range(PARTITIONS), (0, COUNT))
    return [
        PlannedRange("clicks", OffsetRange(BrokerPartition(None, number), *span), incarnation=incarnation)
        for number, span in by_number.items()
    ]


def read_all(metadata: ClusterMetadata, planned: list[PlannedRange], *, fetch_bytes: int = 1_000_000) -> list[str]:
    """The values of all ranges in order; `partition: error` instead of the values of a range that cannot be read."""
    settings = ReadSettings(sizes=FetchSizes(fetch_bytes=fetch_bytes, max_fetch_bytes=fetch_bytes), rack="here")
    values = []
    for one, batches in zip(planned, ModernReader(metadata, settings).read(planned), strict=True):
        try:
            values += [value.decode() for decoded in batches for value in decoded.batch.column("value").to_pylist()]
        except (Corrupt, OffsetOutOfRange, TopicReplaced) as error:
            values.append(f"{one.offsets.partition.partition}: {type(error).__name__}")
    return values


def expected(planned: list[PlannedRange]) -> list[str]:
    """The values of these ranges."""
    return [
        f"{one.offsets.partition.partition}:{offset}"
        for one in planned
        for offset in range(one.offsets.start, one.offsets.stop)
    ]


def requested(cluster: FakeCluster, broker: int | None = None) -> list[list[int]]:
    """The partitions of each Fetch request that the brokers, or one of them, have received."""
    heard = cluster.heard(FETCH) if broker is None else cluster.brokers[broker].heard
    requests: list[Any] = [received.request for received in heard if received.api.key == FETCH]
    return [[partition.partition for partition in request.topics[0].partitions] for request in requests]


def changing(cluster: FakeCluster, changes: Mapping[int, Changed]) -> None:
    """Make broker 0 change its answers for these partitions when it is asked for several."""
    answer = cluster.brokers[0].handlers[FETCH]

    def changed(received: ReceivedRequest) -> FetchResponse:
        response: FetchResponse = answer(received)
        [topic] = response.responses
        if len(topic.partitions) == 1:
            return response
        partitions = tuple(
            changes[partition.partition_index](partition) if partition.partition_index in changes else partition
            for partition in topic.partitions
        )
        return replace(response, responses=(replace(topic, partitions=partitions),))

    cluster.brokers[0].handlers[FETCH] = changed


@pytest.mark.parametrize("version", range(19))
def test_one_request_reads_all_small_ranges_of_a_broker(version: int, open_brokers: OpenBrokers) -> None:
    offered = {**EVERYTHING, FETCH: (version, version)}
    with FakeCluster(logs=logs(), topic_id=LIFE, offered=offered) as cluster:
        planned = ranges()
        assert read_all(open_brokers(cluster), planned) == expected(planned)
        together = [list(range(PARTITIONS))] if version >= 3 else [[number] for number in range(PARTITIONS)]
        assert requested(cluster) == together


def test_each_broker_is_asked_for_its_partitions(open_brokers: OpenBrokers) -> None:
    by_leader = {number: small_log(number, leader=number % 2) for number in range(PARTITIONS)}
    with FakeCluster(logs=by_leader) as cluster:
        planned = ranges()
        assert read_all(open_brokers(cluster), planned) == expected(planned)
        assert [requested(cluster, 0), requested(cluster, 1)] == [[[0, 2, 4, 6, 8, 10]], [[1, 3, 5, 7, 9, 11]]]


@pytest.mark.parametrize("batches", [1, 2, 3, 5, 9, 24, 30])
def test_all_answers_that_wait_have_at_most_the_bytes_of_a_fetch(batches: int, open_brokers: OpenBrokers) -> None:
    by_leader = {number: small_log(number, leader=number % 2) for number in range(PARTITIONS)}
    with FakeCluster(logs=by_leader) as cluster:
        planned = ranges()
        fetch_bytes = batches * LOG_BYTES // 2
        assert read_all(open_brokers(cluster), planned, fetch_bytes=fetch_bytes) == expected(planned)
        requests: list[Any] = [received.request for received in cluster.heard(FETCH)]
        most = [request.max_bytes for request in requests]
        assert most[0] == max(most) == fetch_bytes
        assert min(most) >= fetch_bytes // 2, "with less room, a range is fetched alone"


def test_answers_that_wait_leave_less_room_for_the_next_request(open_brokers: OpenBrokers) -> None:
    by_leader = {number: small_log(number, leader=number % 2) for number in range(PARTITIONS)}
    with FakeCluster(logs=by_leader) as cluster:
        planned, fetch_bytes = ranges(), 15 * LOG_BYTES
        assert read_all(open_brokers(cluster), planned, fetch_bytes=fetch_bytes) == expected(planned)
        requests: list[Any] = [received.request for received in cluster.heard(FETCH)]
    waiting = sum(len(data) for number in range(2, PARTITIONS, 2) for _, data in by_leader[number].entries)
    assert [request.max_bytes for request in requests] == [fetch_bytes, fetch_bytes - waiting]


def test_a_partition_whose_replica_could_not_be_read_is_read_alone_from_its_leader(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=logs()) as cluster:
        metadata, planned = open_brokers(cluster), ranges()
        metadata.prefer_replica("clicks", 3, LEADER)
        assert read_all(metadata, planned) == expected(planned)
        assert requested(cluster) == [[number for number in range(PARTITIONS) if number != 3], [3]]
        requests: list[Any] = [received.request for received in cluster.heard(FETCH)]
        assert [request.rack_id for request in requests] == ["here", ""]


def test_a_read_of_one_range_asks_no_broker_more_often(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=logs()) as cluster:
        for broker in cluster.brokers:
            broker.handlers[METADATA] = lambda _: CLOSE
        [batches] = ModernReader(open_brokers(cluster), ReadSettings()).read(ranges({0: (0, COUNT)}))
        with pytest.raises(NetworkError):
            list(batches)
        assert len(cluster.heard(METADATA)) == ATTEMPTS * len(cluster.brokers)


def test_a_range_is_read_from_its_start_to_its_end(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=logs()) as cluster:
        planned = [*ranges({0: (0, 7), 3: (9, 11), 4: (15, COUNT)}), *ranges({4: (3, 15), 5: (0, COUNT)})]
        assert read_all(open_brokers(cluster), planned) == expected(planned)
        assert requested(cluster) == [[0, 3, 4, 5], [4]]


def test_a_range_with_an_error_is_fetched_alone_and_raises_it(open_brokers: OpenBrokers) -> None:
    broken = small_log(2)
    broken.entries[0] = (9, broken.entries[0][1][:-1] + b"?")
    with FakeCluster(logs=logs(p2=broken, p5=small_log(5, start=10), p7=small_log(7, leader=1))) as cluster:
        planned = ranges()
        lines = read_all(open_brokers(cluster), planned)
        assert [line for line in lines if "Corrupt" in line or "Range" in line] == ["2: Corrupt", "5: OffsetOutOfRange"]
        healthy = [one for one in planned if one.offsets.partition.partition not in {2, 5}]
        assert [line for line in lines if line.count(": ") == 0] == expected(healthy)
        assert [5] in requested(cluster)


def test_ranges_of_a_topic_that_was_replaced_are_not_read(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=logs(), topic_id=OTHER_LIFE) as cluster:
        planned = ranges(incarnation=topic_id_text(LIFE) or "")
        assert read_all(open_brokers(cluster), planned) == [f"{number}: TopicReplaced" for number in range(PARTITIONS)]
        assert requested(cluster) == []


def test_the_replica_that_the_leader_names_is_asked_for_many_partitions(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=logs()) as cluster:
        at_leader = cluster.brokers[0].handlers[FETCH]
        named = dict.fromkeys(range(PARTITIONS), lambda answer: replace(answer, records=b"", preferred_read_replica=1))
        changing(cluster, named)
        cluster.brokers[1].handlers[FETCH] = at_leader  # the replica has the same records
        planned = ranges()
        assert read_all(open_brokers(cluster), planned) == expected(planned)
        assert requested(cluster, 0) == [list(range(PARTITIONS))]
        assert requested(cluster, 1) == [[0], list(range(1, PARTITIONS))]


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: replace(answer, records=b""),
        lambda answer: replace(answer, records=answer.records[:50]),
        lambda answer: replace(answer, records=answer.records[: LOG_BYTES * 3 // 4]),
        lambda answer: replace(answer, error_code=6, records=b""),
        lambda answer: replace(answer, error_code=6, records=small_log(99).entries[0][1]),
        lambda answer: replace(answer, high_watermark=3),
        lambda answer: replace(answer, high_watermark=-1),
    ],
    ids=[
        "empty",
        "cut in the first batch",
        "cut in the second batch",
        "not the leader",
        "error",
        "short log",
        "no log",
    ],
)
def test_a_range_whose_answer_is_of_no_use_is_read_once(change: Changed, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs=logs()) as cluster:
        changing(cluster, dict.fromkeys((0, 3, 11), change))
        planned = ranges()
        assert read_all(open_brokers(cluster), planned) == expected(planned)


@pytest.mark.parametrize(
    "answer", [CLOSE, FetchResponse(responses=()), b"nonsense"], ids=["closed", "quota", "nonsense"]
)
def test_a_broker_that_does_not_answer_for_many_partitions_is_asked_only_once(
    answer: object, open_brokers: OpenBrokers
) -> None:
    with FakeCluster(logs=logs()) as cluster:
        usual = cluster.brokers[0].handlers[FETCH]

        def refusing(received: ReceivedRequest) -> object:
            request: Any = received.request
            return usual(received) if len(request.topics[0].partitions) == 1 else answer

        cluster.brokers[0].handlers[FETCH] = refusing
        planned = ranges()
        assert read_all(open_brokers(cluster), planned) == expected(planned)
        assert requested(cluster) == [list(range(PARTITIONS)), *([number] for number in range(PARTITIONS))]
