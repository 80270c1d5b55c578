"""The time at an offset is the timestamp of the first record that exists from there on."""

# faults R21, R22, R23
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers
from kafka_io.cluster.record_times import record_times
from kafka_io.errors import ConnectFailed, Corrupt, OffsetOutOfRange, PastEnd
from kafka_io.messages.fetch import AbortedTransaction, FetchRequest
from kafka_io.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_io.model import TopicPartition
from kafka_io.reader.reader import FetchSizes, ReadSettings
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.layout import CONTROL, TRANSACTIONAL
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import EVERYTHING, NOT_LEADER, FakeCluster, Log
from tests.kafka_io.conftest import OpenBrokers

FETCH, LIST_OFFSETS = FetchRequest.API.key, ListOffsetsRequest.API.key
START_MS = 1_700_000_000_000
NOW_MS = START_MS + 86_400_000
ONE, TWO = TopicPartition("clicks", 0), TopicPartition("clicks", 1)
FAR_FUTURE_MS = 2**62


def record(offset: int, time_ms: int | None = None, value: bytes = b"v") -> Record:
    return Record(offset=offset, timestamp=START_MS + offset if time_ms is None else time_ms, value=value)


def batch(*offsets: int, **more: Any) -> tuple[int, bytes]:
    """An entry of a fake log."""
    return offsets[-1], record_batch([record(offset) for offset in offsets], **more)


def ask(
    brokers: ClusterMetadata, offsets: Mapping[TopicPartition, int], read_settings: ReadSettings | None = None
) -> PartitionAnswers[int | None]:
    return record_times(brokers, offsets, read_settings or ReadSettings(), now_ms=NOW_MS)


def only(log: Log, offset: int, open_brokers: OpenBrokers, **more: Any) -> object:
    """The time at one offset of a log."""
    with FakeCluster(logs={0: log}, **more) as cluster:
        return ask(open_brokers(cluster), {ONE: offset})[ONE]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_gives_the_timestamp_of_the_record(version: int, open_brokers: OpenBrokers) -> None:
    logs = {0: Log(entries=[batch(0, 1, 2), batch(3, 4)], end=5), 1: Log(entries=[batch(0, 1)], end=2, leader=1)}
    offered = {**EVERYTHING, FETCH: (version, version)}
    with FakeCluster(logs=logs, offered=offered, topic_id=UUID(int=7)) as cluster:
        assert ask(open_brokers(cluster), {ONE: 4, TWO: 0}) == {ONE: START_MS + 4, TWO: START_MS}


@pytest.mark.parametrize("version", [2, 3])
def test_messages_of_format_1_have_times_too(version: int, open_brokers: OpenBrokers) -> None:
    entries = [(2, log_messages([record(offset) for offset in (0, 1, 2)], magic=1, codec=1))]
    offered = {**EVERYTHING, FETCH: (version, version)}
    assert only(Log(entries=entries, end=3), 1, open_brokers, offered=offered) == START_MS + 1


def test_messages_of_format_0_have_no_time(open_brokers: OpenBrokers) -> None:
    entries = [(0, log_messages([record(0)], magic=0))]
    assert only(Log(entries=entries, end=1), 0, open_brokers) is None


@pytest.mark.parametrize(("time_ms", "expected"), [(-1, None), (-5, None), (0, 0), (FAR_FUTURE_MS, FAR_FUTURE_MS)])
def test_an_absurd_time_is_returned_and_a_negative_one_is_unknown(
    time_ms: int, expected: int | None, open_brokers: OpenBrokers
) -> None:
    entries = [(0, record_batch([record(0, time_ms)]))]
    assert only(Log(entries=entries, end=1), 0, open_brokers) == expected


@pytest.mark.parametrize("offset", [1, 5, 8])
def test_the_time_of_a_compacted_record_is_that_of_the_next_one(offset: int, open_brokers: OpenBrokers) -> None:
    entries = [(8, record_batch([record(0), record(8)], span=(0, 8)))]
    assert only(Log(entries=entries, end=9), offset, open_brokers) == START_MS + 8


def test_the_time_of_a_compacted_batch_is_that_of_the_next_one(open_brokers: OpenBrokers) -> None:
    entries = [(4, record_batch([], span=(0, 4))), batch(5)]
    assert only(Log(entries=entries, end=6), 0, open_brokers) == START_MS + 5


def test_an_aborted_record_has_no_time(open_brokers: OpenBrokers) -> None:
    aborted = batch(0, 1, attributes=TRANSACTIONAL, producer=(9, 0, 0))
    marker = Record(offset=2, key=b"\0\0\0\0", value=b"\0" * 6)
    entries = [aborted, (2, record_batch([marker], attributes=TRANSACTIONAL | CONTROL, producer=(9, 0, -1))), batch(3)]
    log = Log(entries=entries, end=4, aborted=(AbortedTransaction(producer_id=9, first_offset=0),))
    assert only(log, 0, open_brokers) == START_MS + 3


def test_there_is_no_time_at_the_end_of_a_log(open_brokers: OpenBrokers) -> None:
    assert only(Log(entries=[batch(0)], end=1), 1, open_brokers) is None


def test_an_offset_before_the_log_is_an_error_of_that_partition(open_brokers: OpenBrokers) -> None:
    logs = {0: Log(entries=[batch(5)], start=5, end=6), 1: Log(entries=[batch(0)], end=1, leader=1)}
    with FakeCluster(logs=logs) as cluster:
        answers = ask(open_brokers(cluster), {ONE: 0, TWO: 0})
    assert isinstance(answers[ONE], OffsetOutOfRange)
    assert answers[TWO] == START_MS


def test_a_broker_that_is_down_hides_only_its_partitions(open_brokers: OpenBrokers) -> None:
    logs = {0: Log(entries=[batch(0)], end=1), 1: Log(entries=[batch(0)], end=1, leader=1)}
    with FakeCluster(logs=logs) as cluster:
        cluster.brokers[1].close()
        answers = ask(open_brokers(cluster), {ONE: 0, TWO: 0})
    assert answers[ONE] == START_MS
    assert isinstance(answers[TWO], ConnectFailed)


# fault B03
def test_a_moved_leader_is_looked_up_again(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: Log(entries=[batch(0)], end=1)}) as cluster:
        brokers = open_brokers(cluster)
        assert ask(brokers, {ONE: 0}) == {ONE: START_MS}
        cluster.logs[0].leader = 1
        assert ask(brokers, {ONE: 0}) == {ONE: START_MS}


def cut_short(cluster: FakeCluster) -> list[int]:
    """Makes fetches return no more than their size, as before KIP-74. Returns the list of these sizes."""
    sizes: list[int] = []
    whole = cluster.brokers[0].handlers[FETCH]

    def answer(received: ReceivedRequest) -> Any:
        request: Any = received.request
        sizes.append(request.topics[0].partitions[0].partition_max_bytes)
        response = whole(received)
        [topic] = response.responses
        [part] = topic.partitions
        part = replace(part, records=part.records[: sizes[-1]])
        return replace(response, responses=(replace(topic, partitions=(part,)),))

    cluster.brokers[0].handlers[FETCH] = answer
    return sizes


def test_a_batch_that_does_not_fit_is_fetched_with_more_room(open_brokers: OpenBrokers) -> None:
    entries = [(0, record_batch([record(0, value=b"x" * 100_000)]))]
    with FakeCluster(logs={0: Log(entries=entries, end=1)}) as cluster:
        sizes = cut_short(cluster)
        assert ask(open_brokers(cluster), {ONE: 0}) == {ONE: START_MS}
    assert sizes == [16_384, 65_536, 262_144]


def test_the_time_in_a_batch_above_the_largest_fetch_is_unknown(open_brokers: OpenBrokers) -> None:
    read_settings = ReadSettings(sizes=FetchSizes(fetch_bytes=20_000, max_fetch_bytes=20_000))
    entries = [(0, record_batch([record(0, value=b"x" * 100_000)]))]
    with FakeCluster(logs={0: Log(entries=entries, end=1)}) as cluster:
        sizes = cut_short(cluster)
        assert ask(open_brokers(cluster), {ONE: 0}, read_settings) == {ONE: None}
    assert sizes == [16_384, *[20_000] * 5]


def test_the_size_of_one_batch_shows_how_much_room_the_others_need(open_brokers: OpenBrokers) -> None:
    """A broker returns the first batch of an answer whole (KIP-74)."""
    entries = [(0, record_batch([record(0, value=b"x" * 100_000)]))]
    logs = {number: Log(entries=entries, end=1) for number in range(3)}
    with FakeCluster(logs=logs) as cluster:
        sizes: list[list[int]] = []

        def answer(received: ReceivedRequest) -> Any:
            request: Any = received.request
            sizes.append([part.partition_max_bytes for part in request.topics[0].partitions])
            response = cluster.fetch(0, received)
            [topic] = response.responses
            first, *others = topic.partitions
            fitting = [replace(part, records=part.records if sizes[-1][0] > 100_000 else b"") for part in others]
            return replace(response, responses=(replace(topic, partitions=(first, *fitting)),))

        cluster.brokers[0].handlers[FETCH] = answer
        asked = {TopicPartition("clicks", number): 0 for number in logs}
        assert ask(open_brokers(cluster), asked) == dict.fromkeys(asked, START_MS)
    assert sizes == [[16_384] * 3, [131_072] * 2]


def test_what_is_behind_the_record_is_not_decoded(open_brokers: OpenBrokers) -> None:
    damaged = bytearray(batch(3)[1])
    damaged[-1] ^= 1
    entries = [batch(0), (2, record_batch([], span=(1, 2))), (3, bytes(damaged))]
    assert only(Log(entries=entries, end=4), 0, open_brokers) == START_MS
    assert isinstance(only(Log(entries=entries, end=4), 1, open_brokers), Corrupt)


# fault R01
def test_invalid_records_are_an_error(open_brokers: OpenBrokers) -> None:
    data = bytearray(batch(0)[1])
    data[-1] ^= 1
    assert isinstance(only(Log(entries=[(0, bytes(data))], end=1), 0, open_brokers), Corrupt)


class Old:
    """Makes broker 0 a 0.8 broker: segments 0 and 100, which were last written to a day and an hour before now."""

    written = ((100, NOW_MS - 3_600_000), (0, NOW_MS - 86_400_000))

    def __init__(self, cluster: FakeCluster, *, code: int = 0) -> None:
        self.code = code
        self.asked = 0
        cluster.brokers[0].handlers[LIST_OFFSETS] = self._answer

    def _answer(self, received: ReceivedRequest) -> ListOffsetsResponse:
        request: Any = received.request
        [topic] = request.topics
        self.asked += 1
        parts = tuple(self._part(requested) for requested in topic.partitions)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=topic.name, partitions=parts),))

    def _part(self, requested: Any) -> ListOffsetsPartitionResponse:
        known = [
            start for start, write_ms in self.written if requested.timestamp < 0 or write_ms <= requested.timestamp
        ]
        offsets = [150, *known] if requested.timestamp < 0 else known
        return ListOffsetsPartitionResponse(
            partition_index=requested.partition_index,
            error_code=self.code,
            old_style_offsets=tuple(offsets[: requested.max_num_offsets]),
        )


OLD_VERSIONS = {**EVERYTHING, FETCH: (0, 1), LIST_OFFSETS: (0, 0)}


@pytest.mark.parametrize(("offset", "age_h"), [(0, 24), (99, 24), (100, 1), (149, 1), (150, None)])
def test_before_0_10_the_time_is_the_last_write_to_the_segment(
    offset: int, age_h: int | None, open_brokers: OpenBrokers
) -> None:
    with FakeCluster(logs={0: Log(entries=[], end=150)}, offered=OLD_VERSIONS) as cluster:
        old = Old(cluster)
        time_ms = ask(open_brokers(cluster), {ONE: offset})[ONE]
        assert old.asked <= 13
    if age_h is None:
        assert time_ms is None
    else:
        assert isinstance(time_ms, int)
        assert 1 <= (NOW_MS - time_ms) / 3_600_000 / age_h <= 1.005


def test_before_0_10_an_error_hides_only_its_partition(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: Log(entries=[], end=150)}, offered=OLD_VERSIONS) as cluster:
        Old(cluster, code=1)
        assert isinstance(ask(open_brokers(cluster), {ONE: 0})[ONE], OffsetOutOfRange)


def test_a_moved_leader_of_0_8_is_an_error_with_its_code(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: Log(entries=[], end=150)}, offered=OLD_VERSIONS) as cluster:
        Old(cluster, code=NOT_LEADER)
        error = ask(open_brokers(cluster), {ONE: 0})[ONE]
    assert isinstance(error, Exception)
    assert getattr(error, "code", None) == NOT_LEADER


# fault B13
@pytest.mark.parametrize("lasts", [False, True])
def test_records_after_the_high_watermark_of_the_same_answer_are_fetched_again(
    lasts: bool, open_brokers: OpenBrokers
) -> None:
    with FakeCluster(logs={0: Log(entries=[batch(0), batch(1, 2)], end=2)}) as cluster:

        def fetch(received: ReceivedRequest) -> object:
            answer = cluster.fetch(0, received)
            cluster.logs[0].end = 2 if lasts else 3
            return answer

        cluster.brokers[0].handlers[FETCH] = fetch
        answer = ask(open_brokers(cluster), {ONE: 1})[ONE]
        assert isinstance(answer, PastEnd) if lasts else answer == START_MS + 1
