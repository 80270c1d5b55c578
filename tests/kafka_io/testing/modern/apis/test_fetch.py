"""Fetch: the format that each version gets, the limits of the answer, and how long it waits."""

# faults R02, R03
import threading

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_io.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_io.records.layout import MAGIC_AT
from kafka_io.testing.modern.log.log import PartitionLog
from kafka_io.testing.segment_file import FileRegion
from tests.kafka_io.records.decoding import read_rows
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import (
    Client,
    batch,
    expected_values,
    fetch_request,
    numbered,
    values,
)

MAGIC = {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 11: 2, 12: 2}


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
@pytest.mark.parametrize("version", MAGIC)
def test_each_version_of_fetch_gets_the_message_format_that_it_knows(client: Client, version: int, codec: int) -> None:
    for first in (0, 3):
        client.produce("clicks", batch(3, first=first, codec=codec))
    data = bytes(client.fetch("clicks", version=version).records or b"")
    assert data[MAGIC_AT] == MAGIC[version]
    times = [-1 if MAGIC[version] == 0 else record.timestamp for record in numbered(6)]
    rows = [(row[0], row[1], row[4]) for row in read_rows(data)]
    assert rows == list(zip(range(6), times, expected_values(6), strict=True))


@pytest.mark.parametrize("version", MAGIC)
def test_a_fetch_starts_with_the_batch_that_contains_its_offset(client: Client, version: int) -> None:
    for first in (0, 3):
        client.produce("clicks", batch(3, first=first))
    data = bytes(client.fetch("clicks", 4, version=version).records or b"")
    assert int.from_bytes(data[:8], "big") == (3 if version >= 4 else 4)
    assert values(data, start=4) == expected_values(2, first=4)


@pytest.mark.parametrize(("version", "code"), [(1, 76), (3, 76), (4, 0), (10, 0)])
def test_zstd_batches_are_refused_before_v4(client: Client, version: int, code: int) -> None:
    client.produce("clicks", batch(3, codec=4))
    answer = client.fetch("clicks", version=version)
    assert (answer.error_code, values(answer.records)) == (code, [] if code else expected_values(3))


def test_since_v3_the_first_batch_is_complete_even_above_the_limit(client: Client) -> None:
    for _ in range(2):
        client.produce("clicks", batch(3))
    assert values(client.fetch("clicks", max_bytes=10).records) == expected_values(3)
    assert values(client.fetch("clicks", version=3, max_bytes=10).records) == expected_values(3)


def test_before_v3_the_first_message_is_cut_at_the_limit(client: Client) -> None:
    client.produce("clicks", batch(3))
    whole = bytes(client.fetch("clicks", version=0).records or b"")
    assert client.fetch("clicks", version=0, max_bytes=50).records == whole[:50]
    assert client.fetch("clicks", version=0, max_bytes=-1).records == b""


def test_max_bytes_limits_all_partitions_together(start_modern: StartModern, connect: Connect) -> None:
    client = connect(start_modern())
    client.create("clicks", 3)
    for partition in range(3):
        client.produce("clicks", batch(3), partition=partition)
    parts = tuple(FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=10**6) for number in range(3))
    sizes = {}
    size = len(batch(3))
    for max_bytes in (10, size, size + 70, 3 * size):
        answer = client.ask(
            FetchRequest(max_bytes=max_bytes, topics=(FetchTopic(topic="clicks", partitions=parts),)), 12
        )
        sizes[max_bytes] = [len(partition.records or b"") for partition in answer.responses[0].partitions]
    assert sizes == {
        10: [size, 0, 0],
        size: [size, 0, 0],
        size + 70: [size, 70, 0],
        3 * size: [size, size, size],
    }


@pytest.mark.parametrize("offset", [-1, 4])
def test_an_offset_out_of_range_is_answered_with_the_bounds_of_the_log(client: Client, offset: int) -> None:
    client.produce("clicks", batch(3))
    answer = client.fetch("clicks", offset)
    assert (answer.error_code, answer.log_start_offset, answer.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0, 3)


def test_an_unknown_topic_epoch_or_session_gets_an_error_code(client: Client) -> None:
    assert client.fetch("nobody").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    parts = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1, current_leader_epoch=1),)
    request = FetchRequest(topics=(FetchTopic(topic="clicks", partitions=parts),))
    assert client.ask(request, 12).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert client.ask(FetchRequest(session_id=7, topics=())).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_topic_can_be_given_by_its_id(client: Client) -> None:
    client.produce("clicks", batch(3))
    [topic] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="clicks"),))).topics
    parts = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10**6),)
    answers = []
    for topic_id in (topic.topic_id, type(topic.topic_id)(int=1)):
        answer = client.ask(FetchRequest(topics=(FetchTopic(topic_id=topic_id, partitions=parts),)))
        partition = answer.responses[0].partitions[0]
        answers.append((partition.error_code, values(partition.records)))
    assert answers == [(0, expected_values(3)), (ErrorCode.UNKNOWN_TOPIC_ID, [])]


def test_a_fetch_waits_until_there_are_enough_bytes(start_modern: StartModern, connect: Connect) -> None:
    broker = start_modern()
    reader, writer = connect(broker), connect(broker)
    writer.create("clicks")
    sent = batch(1)
    parts = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10**6),)
    waiting = FetchRequest(
        max_wait_ms=8000, min_bytes=3 * len(sent), topics=(FetchTopic(topic="clicks", partitions=parts),)
    )
    reader.send(waiting, 12)
    for _ in range(3):
        assert writer.produce("clicks", sent).error_code == 0
    answer = reader.receive().responses[0].partitions[0]
    assert (answer.high_watermark, len(values(answer.records))) == (3, 3)


def test_a_fetch_without_records_waits_its_time_and_reads_the_log_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_offsets: list[int] = []
    region = PartitionLog.region

    def counted(
        self: PartitionLog, offset: int, max_bytes: int, *, whole: bool, stop: int | None = None
    ) -> FileRegion | None:
        read_offsets.append(offset)
        return region(self, offset, max_bytes, whole=whole, stop=stop)

    monkeypatch.setattr(PartitionLog, "region", counted)
    assert client.fetch("clicks", wait_ms=200).records == b""
    assert read_offsets == [0]


def test_a_broker_that_is_stopped_does_not_wait_for_its_readers(start_modern: StartModern, connect: Connect) -> None:
    broker = start_modern()
    reader = connect(broker)
    reader.create("clicks")
    reader.send(fetch_request("clicks", wait_ms=30_000), 12)
    stopping = threading.Thread(target=broker.stop)
    stopping.start()
    stopping.join(5)
    assert not stopping.is_alive()
