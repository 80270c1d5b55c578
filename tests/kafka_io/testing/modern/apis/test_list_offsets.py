"""ListOffsets: the start and the end of a log and the first offset at a time, in each version."""

import os
from pathlib import Path

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafka_io.messages.list_offsets import (
    EARLIEST_TIME,
    LATEST_TIME,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartition,
    LeaderEpochTopic,
    OffsetForLeaderEpochRequest,
)
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import START_MS, Client, batch


def shorten(client: Client, offset: int) -> tuple[int, int]:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    answer = client.ask(
        DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="clicks", partitions=(partition,)),), timeout_ms=1)
    )
    response = answer.topics[0].partitions[0]
    return response.error_code, response.low_watermark


def segment_starts(client: Client, time_ms: int, *, max_offsets: int = 9) -> tuple[int, ...]:
    partition = ListOffsetsPartition(partition_index=0, timestamp=time_ms, max_num_offsets=max_offsets)
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name="clicks", partitions=(partition,)),))
    return client.ask(request, 0).topics[0].partitions[0].old_style_offsets


@pytest.mark.parametrize("version", [1, 4, 7, 10])
def test_list_offsets_finds_both_ends_and_the_first_record_at_a_time(client: Client, version: int) -> None:
    for first in (0, 3):
        client.produce("clicks", batch(3, first=first))
    times_ms = [EARLIEST_TIME, LATEST_TIME, 0, START_MS + 3500, START_MS + 5000, START_MS + 5001]
    answers = [client.offset_at("clicks", time_ms, version=version) for time_ms in times_ms]
    assert answers == [(0, 0), (0, 6), (0, 0), (0, 4), (0, 5), (0, -1)]


def test_max_timestamp_finds_the_record_with_the_largest_timestamp(client: Client) -> None:
    for first in (5, 0):
        client.produce("clicks", batch(3, first=first))
    assert client.offset_at("clicks", MAX_TIMESTAMP) == (0, 2)


def test_an_unknown_topic_gets_an_error_code(client: Client) -> None:
    assert client.offset_at("nobody", LATEST_TIME) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_delete_records_moves_the_log_start(client: Client) -> None:
    client.produce("clicks", batch(6))
    assert shorten(client, 4) == (0, 4)
    assert client.offset_at("clicks", EARLIEST_TIME) == (0, 4)
    assert client.offset_at("clicks", 0) == (0, 4)
    assert shorten(client, 7) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert shorten(client, -1) == (0, 6)
    assert client.offset_at("clicks", 0) == (0, -1)


def test_v0_answers_with_starts_of_segments(start_modern: StartModern, connect: Connect) -> None:
    client = connect(start_modern(segment_bytes=10))
    client.create("clicks")

    assert segment_starts(client, LATEST_TIME) == (0,)
    for _ in range(3):
        client.produce("clicks", batch(3))
    assert segment_starts(client, LATEST_TIME) == (9, 6, 3, 0)
    assert segment_starts(client, LATEST_TIME, max_offsets=2) == (9, 6)
    assert segment_starts(client, EARLIEST_TIME) == (0,)
    assert segment_starts(client, 0) == ()
    assert segment_starts(client, 2**62) == (9, 6, 3, 0)


def test_v0_answers_with_all_segments_up_to_the_newest_one_of_the_time(
    start_modern: StartModern, connect: Connect, tmp_path: Path
) -> None:
    """A genuine broker looks from the newest segment on, and the times of files need not be in order."""
    client = connect(start_modern(segment_bytes=10))
    client.create("clicks")
    for _ in range(3):
        client.produce("clicks", batch(3))
    for start, modified_s in ((0, 3000), (3, 1000), (6, 2000)):
        os.utime(tmp_path / "data" / "clicks-0" / f"{start:020d}.log", (modified_s, modified_s))
    assert segment_starts(client, 1_500_000) == (3, 0)
    assert segment_starts(client, 999_000) == ()


@pytest.mark.parametrize(("epoch", "expected"), [(0, (0, 0, 3)), (1, (0, -1, -1))])
def test_the_only_leader_epoch_ends_at_the_end_of_the_log(
    client: Client, epoch: int, expected: tuple[int, int, int]
) -> None:
    client.produce("clicks", batch(3))
    partition = LeaderEpochPartition(partition=0, leader_epoch=epoch)
    topics = (LeaderEpochTopic(topic="clicks", partitions=(partition,)),)
    response = client.ask(OffsetForLeaderEpochRequest(topics=topics)).topics[0].partitions[0]
    assert (response.error_code, response.leader_epoch, response.end_offset) == expected
