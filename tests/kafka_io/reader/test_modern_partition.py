"""Bounded reads from brokers that move, lag, lie or stop return each offset once, or a typed error."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest

from kafka_io.brokers import modern_connection, throttle
from kafka_io.brokers.cluster_metadata import topic_id_text
from kafka_io.errors import (
    Corrupt,
    LeaderMoved,
    LogShort,
    OffsetOutOfRange,
    PastEnd,
    Throttled,
    TooLarge,
    TopicReplaced,
    Where,
)
from kafka_io.messages.fetch import AbortedTransaction, FetchRequest, FetchResponse
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.modern_partition import ModernPartition
from kafka_io.reader.reader import FetchSizes, PlannedRange, ReadSettings
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.layout import CONTROL, TRANSACTIONAL
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.fakes.decoding import lose_rows
from tests.kafka_io.conftest import ATTEMPTS, OpenBrokers

FETCH, METADATA = FetchRequest.API.key, MetadataRequest.API.key
LIFE, OTHER_LIFE = UUID(int=7), UUID(int=8)
PER_BATCH, COUNT = 10, 100


def log(*, codec: int = 0, **changes: Any) -> Log:
    """100 records in batches of ten; the value of each is its offset."""
    entries = [
        (
            base + PER_BATCH - 1,
            record_batch(
                [Record(offset=offset, value=b"%d" % offset) for offset in range(base, base + PER_BATCH)], codec=codec
            ),
        )
        for base in range(0, COUNT, PER_BATCH)
    ]
    return replace(Log(entries=entries, end=COUNT), **changes)


BATCH_BYTES = len(log().entries[0][1])


def partition(
    cluster: FakeCluster,
    open_brokers: OpenBrokers,
    span: tuple[int, int] = (0, COUNT),
    *,
    size: int = 3 * BATCH_BYTES,
    most: int = 20 * BATCH_BYTES,
    incarnation: str = "unknown",
    **connecting: Any,
) -> ModernPartition:
    """Partition 0, read a few batches at a time."""
    return ModernPartition(
        metadata=open_brokers(cluster, **connecting),
        planned=PlannedRange(
            topic="clicks", offsets=OffsetRange(BrokerPartition(None, 0), span[0], span[1]), incarnation=incarnation
        ),
        read_settings=ReadSettings(
            sizes=FetchSizes(fetch_bytes=size, max_fetch_bytes=most),
            limits=DecodeLimits(batch_bytes=BATCH_BYTES),  # a batch for each answer, or about that
            rack="here",
        ),
    )


def offsets(read: ModernPartition) -> list[int]:
    """The offsets that were read; each value must be that of its offset."""
    rows = [row for decoded in read.read() for row in decoded.batch.to_pylist()]
    assert [row["value"] for row in rows] == [b"%d" % row["offset"] for row in rows]
    return [row["offset"] for row in rows]


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("span", [(0, COUNT), (0, 1), (7, 8), (9, 11), (15, 77), (99, 100)])
def test_a_span_is_read_to_its_last_offset_and_not_beyond(
    span: tuple[int, int], codec: int, open_brokers: OpenBrokers
) -> None:
    with FakeCluster(logs={0: log(codec=codec)}) as cluster:
        assert offsets(partition(cluster, open_brokers, span)) == list(range(*span))


@pytest.mark.parametrize("version", range(19))
def test_every_version_of_fetch_gives_the_same_rows(version: int, open_brokers: OpenBrokers) -> None:
    offered = {**EVERYTHING, FETCH: (version, version)}
    with FakeCluster(logs={0: log()}, topic_id=LIFE, offered=offered) as cluster:
        assert offsets(partition(cluster, open_brokers, (3, 42))) == list(range(3, 42))
        assert {received.version for received in cluster.heard(FETCH)} == {version}


def test_a_topic_without_an_id_is_fetched_by_name(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        assert offsets(partition(cluster, open_brokers)) == list(range(COUNT))
        assert {received.version for received in cluster.heard(FETCH)} == {12}


# fault R28: what a log holds after its broker was upgraded twice
def test_entries_of_every_format_follow_each_other(open_brokers: OpenBrokers) -> None:
    records = [Record(offset=offset, value=b"%d" % offset) for offset in range(6)]
    entries = [
        (0, log_messages(records[:1], magic=0)),
        (1, log_messages(records[1:2], magic=0)),
        (3, log_messages(records[2:4], magic=1, codec=1)),
        (5, record_batch(records[4:])),
    ]
    with FakeCluster(logs={0: Log(entries=entries, end=6)}) as cluster:
        assert offsets(partition(cluster, open_brokers, (1, 6))) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("codec", [0, 4])
def test_the_broker_receives_the_next_fetch_before_the_first_batch_is_consumed(
    codec: int, open_brokers: OpenBrokers
) -> None:  # fault G15
    with FakeCluster(logs={0: log(codec=codec)}) as cluster:
        three_batches = 3 * max(len(entry) for _, entry in cluster.logs[0].entries)
        batches = partition(cluster, open_brokers, size=three_batches).read()
        rows = next(batches).batch.num_rows
        until(lambda: len(cluster.heard(FETCH)) == 2)
        assert fetched_offsets(cluster) == [0, 3 * PER_BATCH]
        assert sum(decoded.batch.num_rows for decoded in batches) == COUNT - rows
        assert fetched_offsets(cluster) == [0, 3 * PER_BATCH, 6 * PER_BATCH, 9 * PER_BATCH]


def test_a_fetch_that_was_sent_ahead_and_lost_is_sent_again(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        batches = partition(cluster, open_brokers).read()
        rows = next(batches).batch.num_rows
        cluster.brokers[0].drop_connections()  # joins nothing: what was sent ahead was heard or is lost
        assert sum(decoded.batch.num_rows for decoded in batches) == COUNT - rows


def fetched_offsets(cluster: FakeCluster) -> list[int]:
    """The offset of each fetch of partition 0 that the brokers received."""
    requests: list[Any] = [received.request for received in cluster.heard(FETCH)]
    return [request.topics[0].partitions[0].fetch_offset for request in requests]


def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds`, for ten seconds at most."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


# fault R03: before v3 a broker cuts a batch that is larger than the fetch
@pytest.mark.parametrize("size", [5, BATCH_BYTES // 5])  # the first is too small for a length
def test_a_fetch_grows_until_a_batch_fits(size: int, open_brokers: OpenBrokers) -> None:
    offered = {**EVERYTHING, FETCH: (2, 2)}
    with FakeCluster(logs={0: log()}, offered=offered) as cluster:
        cut_at_size(cluster)
        assert offsets(partition(cluster, open_brokers, size=size)) == list(range(COUNT))
        requests: list[Any] = [received.request for received in cluster.heard(FETCH)]
        assert BATCH_BYTES in {request.topics[0].partitions[0].partition_max_bytes for request in requests}


def test_a_batch_above_the_cap_is_an_error_that_names_the_setting(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}, offered={**EVERYTHING, FETCH: (2, 2)}) as cluster:
        cut_at_size(cluster)
        read = partition(cluster, open_brokers, size=BATCH_BYTES // 5, most=BATCH_BYTES - 1)
        with pytest.raises(TooLarge, match="max_fetch_bytes") as raised:
            offsets(read)
        assert raised.value.where.offset == 0


def cut_at_size(cluster: FakeCluster) -> None:
    """Make broker 0 answer with no more bytes than requested."""
    whole = cluster.brokers[0].handlers[FETCH]

    def cut(received: ReceivedRequest) -> FetchResponse:
        answer = whole(received)
        [topic] = answer.responses
        [partition_answer] = topic.partitions
        request: Any = received.request
        size = request.topics[0].partitions[0].partition_max_bytes
        partitions = (replace(partition_answer, records=partition_answer.records[:size]),)
        return replace(answer, responses=(replace(topic, partitions=partitions),))  # type: ignore[no-any-return] # a dataclass

    cluster.brokers[0].handlers[FETCH] = cut


# fault B03
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_leader_that_moves_is_followed_without_gap_or_repeat(after: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        first = cluster.brokers[0].handlers[FETCH]

        def moving(received: ReceivedRequest) -> FetchResponse:
            if len(cluster.heard(FETCH)) > after:
                cluster.logs[0].leader = 1
            return first(received)  # type: ignore[no-any-return] # a handler of the fake's

        cluster.brokers[0].handlers[FETCH] = moving
        assert offsets(partition(cluster, open_brokers)) == list(range(COUNT))
        assert len([received for received in cluster.brokers[1].heard if received.api.key == FETCH]) > 0


def test_after_a_leader_dies_the_next_leader_is_read(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        batches = partition(cluster, open_brokers).read()
        seen = next(batches).batch.column("offset").to_pylist()
        cluster.logs[0].leader = 1
        cluster.brokers[0].close()
        seen += [offset for decoded in batches for offset in decoded.batch.column("offset").to_pylist()]
        assert seen == list(range(COUNT))


def test_a_partition_that_stays_without_leader_is_an_error_after_all_attempts(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log(leader=-1)}) as cluster:
        with pytest.raises(LeaderMoved, match="no leader") as raised:
            offsets(partition(cluster, open_brokers))
        assert raised.value.where == Where(cluster="main", topic="clicks", partition=0, offset=0)
        assert len(cluster.heard(METADATA)) == ATTEMPTS


# faults B07, B09
def test_an_offset_that_expired_is_an_error_at_once(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log(start=50)}) as cluster:
        with pytest.raises(OffsetOutOfRange) as raised:
            offsets(partition(cluster, open_brokers, (20, 60)))
        assert (raised.value.where.offset, raised.value.where.topic) == (20, "clicks")
        assert len(cluster.heard(FETCH)) == 1


# faults B05, B14
def test_a_log_that_ends_early_is_an_error_after_all_attempts(open_brokers: OpenBrokers) -> None:
    short = log(end=30)
    short.entries = short.entries[:3]
    with FakeCluster(logs={0: short}) as cluster:
        with pytest.raises(LogShort, match="no records from offset 30 on; its log ends at 30") as raised:
            offsets(partition(cluster, open_brokers, (0, 60)))
        assert raised.value.where.offset == 30


def test_records_after_the_high_watermark_of_a_leader_are_not_accepted(open_brokers: OpenBrokers) -> None:  # fault G14
    with FakeCluster(logs={0: log()}) as cluster:
        answer = cluster.brokers[0].handlers[FETCH]

        def lag_once(received: ReceivedRequest) -> FetchResponse:
            response: FetchResponse = answer(received)
            if len(cluster.heard(FETCH)) > 1:
                return response
            [topic] = response.responses
            [partition_answer] = topic.partitions
            return replace(
                response, responses=(replace(topic, partitions=(replace(partition_answer, high_watermark=39),)),)
            )

        cluster.brokers[0].handlers[FETCH] = lag_once
        assert offsets(partition(cluster, open_brokers, (40, 60))) == list(range(40, 60))
        assert fetched_offsets(cluster) == [40, 40]


def test_a_fetch_waits_until_the_quota_allows_it(open_brokers: OpenBrokers) -> None:  # fault W18
    with FakeCluster(logs={0: log()}) as cluster:
        answer = cluster.brokers[0].handlers[FETCH]
        cluster.brokers[0].handlers[FETCH] = lambda received: (
            FetchResponse(throttle_time_ms=5, responses=()) if len(cluster.heard(FETCH)) == 1 else answer(received)
        )
        assert offsets(partition(cluster, open_brokers)) == list(range(COUNT))


class Clock:
    """A clock that only `sleep` moves; it replaces that of the connections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        for module in (modern_connection, throttle):
            monkeypatch.setattr(module, "time", Mock(monotonic=lambda: self.now))

    def sleep(self, seconds: float) -> None:
        """Move the clock."""
        self.pauses.append(seconds)
        self.now += seconds


def throttling(cluster: FakeCluster, throttle_s: float, *, empty: bool) -> None:
    """Make the leader ask for this wait in each answer to a fetch, which is empty or has records."""
    answer = cluster.brokers[0].handlers[FETCH]

    def throttled(received: ReceivedRequest) -> FetchResponse:
        response: FetchResponse = answer(received)
        return replace(
            response, throttle_time_ms=round(1000 * throttle_s), responses=() if empty else response.responses
        )

    cluster.brokers[0].handlers[FETCH] = throttled


# fault N15: the most that the protocol can express, and waits that are only too long in sum
@pytest.mark.parametrize(
    ("throttle_s", "empty", "fetches"), [(2_147_483, False, 1), (2_147_483, True, 1), (110, True, 3)]
)
def test_a_leader_that_throttles_for_too_long_is_reported(
    throttle_s: float, empty: bool, fetches: int, open_brokers: OpenBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    with FakeCluster(logs={0: log()}) as cluster:
        throttling(cluster, throttle_s, empty=empty)
        read = partition(cluster, open_brokers, sleep=clock.sleep, attempts=9)
        with pytest.raises(Throttled, match="more than the 300 s that this client accepts") as raised:
            offsets(read)
        assert raised.value.where.topic == "clicks"
        assert len(cluster.heard(FETCH)) == fetches
        assert clock.now < 300


def test_a_throttle_is_obeyed_as_long_as_records_arrive(
    open_brokers: OpenBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault N15
    clock = Clock(monkeypatch)
    with FakeCluster(logs={0: log()}) as cluster:
        throttling(cluster, 100, empty=False)
        assert offsets(partition(cluster, open_brokers, sleep=clock.sleep)) == list(range(COUNT))
        assert clock.pauses == [100] * (len(cluster.heard(FETCH)) - 1)
        assert clock.now >= 300


# fault B06
def test_a_recreated_topic_is_not_read_for_the_planned_one(open_brokers: OpenBrokers) -> None:
    planned = topic_id_text(LIFE)
    assert planned is not None
    with FakeCluster(logs={0: log()}, topic_id=LIFE) as cluster:
        read = partition(cluster, open_brokers, incarnation=planned).read()
        assert next(read).batch.num_rows > 0
        cluster.topic_id = OTHER_LIFE
        cluster.brokers[0].drop_connections()
        with pytest.raises(TopicReplaced, match=planned):
            list(read)


# fault R10: a transaction that was aborted
def test_aborted_records_and_markers_are_gaps_by_cause(open_brokers: OpenBrokers) -> None:
    doomed = [Record(offset=0, value=b"0"), Record(offset=1, value=b"1")]
    marker = [Record(offset=2, key=bytes(4))]
    entries = [
        (1, record_batch(doomed, producer=(9, 0, 0), attributes=TRANSACTIONAL)),
        (2, record_batch(marker, producer=(9, 0, 0), attributes=TRANSACTIONAL | CONTROL)),
        (3, record_batch([Record(offset=3, value=b"3")])),
    ]
    aborted = (AbortedTransaction(producer_id=9, first_offset=0),)
    with FakeCluster(logs={0: Log(entries=entries, end=4, aborted=aborted)}) as cluster:
        batches = list(partition(cluster, open_brokers, (0, 4)).read())
        assert [decoded.batch.column("offset").to_pylist() for decoded in batches] == [[3]]
        assert dict(batches[0].gaps) == {"aborted": 2, "control": 1}


# fault P03
def test_rows_are_counted_without_the_decoder(open_brokers: OpenBrokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that loses every seventh row, and calls it compacted, contradicts the headers of the batches."""
    with FakeCluster(logs={0: log()}) as cluster:
        assert offsets(partition(cluster, open_brokers)) == list(range(COUNT))
        lose_rows(monkeypatch)
        with pytest.raises(Corrupt, match=rf"\d\d records were decoded .* {COUNT} records"):
            offsets(partition(cluster, open_brokers))


# fault R05
def test_invalid_records_are_an_error_with_their_place(open_brokers: OpenBrokers) -> None:
    broken = log()
    last, data = broken.entries[4]
    broken.entries[4] = (last, data[:-1] + bytes((data[-1] ^ 1,)))
    with FakeCluster(logs={0: broken}) as cluster:
        with pytest.raises(Corrupt, match="CRC") as raised:
            offsets(partition(cluster, open_brokers))
        assert raised.value.where.as_dict() == {"cluster": "main", "topic": "clicks", "partition": 0, "offset": 40}


# fault P10: Fetch names topics up to v12, and has their ids from v13 on
@pytest.mark.parametrize("version", [4, 12, 13, 18])
@pytest.mark.parametrize("change", ["topic", "partition", "twice"])
def test_an_answer_for_something_else_is_refused_and_closes_the_connection(
    change: str, version: int, open_brokers: OpenBrokers
) -> None:
    offered = {**EVERYTHING, FETCH: (version, version)}
    with FakeCluster(logs={0: log(), 1: log()}, topic_id=LIFE, offered=offered) as cluster:
        answer = cluster.brokers[0].handlers[FETCH]

        def other(received: ReceivedRequest) -> FetchResponse:
            response: FetchResponse = answer(received)
            [topic] = response.responses
            changed = {
                "topic": replace(topic, topic="views") if version < 13 else replace(topic, topic_id=OTHER_LIFE),
                "partition": replace(topic, partitions=(replace(topic.partitions[0], partition_index=1),)),
                "twice": replace(topic, partitions=topic.partitions * 2),
            }
            return replace(response, responses=(changed[change],))

        cluster.brokers[0].handlers[FETCH] = other
        read = partition(cluster, open_brokers)
        with pytest.raises(Corrupt, match="twice" if change == "twice" else "not requested"):
            offsets(read)
        before = cluster.brokers[0].connections
        cluster.brokers[0].handlers[FETCH] = answer
        assert offsets(read) == list(range(COUNT))
        assert cluster.brokers[0].connections == before + 1


def naming(cluster: FakeCluster, node: int, *, leader_node: int = 0) -> None:
    """Make the leader name a replica to readers that give their rack."""
    answer = cluster.brokers[leader_node].handlers[FETCH]

    def leader(received: ReceivedRequest) -> FetchResponse:
        request: Any = received.request
        response: FetchResponse = answer(received)
        [topic] = response.responses
        if not request.rack_id:
            return response
        partitions = (replace(topic.partitions[0], records=b"", preferred_read_replica=node),)
        return replace(response, responses=(replace(topic, partitions=partitions),))

    cluster.brokers[leader_node].handlers[FETCH] = leader


@pytest.mark.parametrize("leader", [0, 1])
def test_the_nearest_replica_is_read_if_the_leader_names_one(leader: int, open_brokers: OpenBrokers) -> None:
    """KIP-392."""
    with FakeCluster(logs={0: log(leader=leader)}) as cluster:
        naming(cluster, 1 - leader, leader_node=leader)
        cluster.brokers[1 - leader].handlers[FETCH] = lambda received: cluster.fetch(leader, received)
        assert offsets(partition(cluster, open_brokers)) == list(range(COUNT))
        assert len([received for received in cluster.brokers[leader].heard if received.api.key == FETCH]) == 1


def test_records_in_an_answer_that_names_a_replica_are_read(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        answer = cluster.brokers[0].handlers[FETCH]

        def named(received: ReceivedRequest) -> FetchResponse:
            response: FetchResponse = answer(received)
            [topic] = response.responses
            partitions = (replace(topic.partitions[0], preferred_read_replica=1),)
            return replace(response, responses=(replace(topic, partitions=partitions),))

        cluster.brokers[0].handlers[FETCH] = named
        assert offsets(partition(cluster, open_brokers)) == list(range(COUNT))
        assert not [received for received in cluster.brokers[1].heard if received.api.key == FETCH]


@pytest.mark.parametrize("node", [1, 9])
def test_the_leader_is_read_if_the_replica_fails(node: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: log()}) as cluster:
        naming(cluster, node)
        assert offsets(partition(cluster, open_brokers)) == list(range(COUNT))


def test_a_throttled_client_waits(open_brokers: OpenBrokers) -> None:  # fault W18; KIP-219
    with FakeCluster(logs={0: log()}) as cluster:
        connection = open_brokers(cluster).leader("clicks", 0).connection
        pauses: list[float] = []
        connection._throttle.sleep = pauses.append
        cluster.brokers[0].handlers[METADATA] = lambda received: replace(
            cluster.metadata(received), throttle_time_ms=2500
        )
        for _ in range(2):
            connection.request(MetadataRequest(topics=None))
        assert [round(pause) for pause in pauses] == [2]


def grown() -> Log:
    """Offsets 90 to 99 are compacted away, and 100 to 109 were written while the broker answered: its end is older."""
    later = record_batch([Record(offset=offset, value=b"%d" % offset) for offset in range(COUNT, COUNT + PER_BATCH)])
    return replace(log(), entries=[*log().entries[:-1], (COUNT + PER_BATCH - 1, later)])


# fault B13
def test_records_after_the_high_watermark_of_the_same_answer_are_fetched_again(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: grown()}) as cluster:

        def fetch(received: ReceivedRequest) -> FetchResponse:
            answer = cluster.fetch(0, received)
            cluster.logs[0].end = COUNT + PER_BATCH
            return answer

        cluster.brokers[0].handlers[FETCH] = fetch
        assert offsets(partition(cluster, open_brokers, size=20 * BATCH_BYTES)) == list(range(COUNT - PER_BATCH))
        assert len(cluster.heard(FETCH)) == 2


# fault R07
def test_records_that_stay_after_the_high_watermark_are_corrupt(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: grown()}) as cluster:
        with pytest.raises(PastEnd, match="an entry with offset 100"):
            offsets(partition(cluster, open_brokers, size=20 * BATCH_BYTES))
        assert len(cluster.heard(FETCH)) == ATTEMPTS
