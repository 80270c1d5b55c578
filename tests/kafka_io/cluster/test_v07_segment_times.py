"""0.7 knows only the times of segments; a read from an offset by time misses no later message [kafka-0.7: OFFSETS]."""

import os
from pathlib import Path

import pytest

from kafka_io.cluster.v07_cluster import end_at, offset_at, time_at
from kafka_io.errors import ConnectionLost
from kafka_io.model import BrokerPartition
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.v07.partition import Partition07
from tests.kafka_io.conftest import OpenConnection, StartBroker
from tests.kafka_io.testing.v07.talk import Client, numbered

NOON_S = 1_700_000_000
IN_A_YEAR_MS = 4_000_000_000_000


def partition(number: int, start_broker: StartBroker, open_connection: OpenConnection) -> Partition07:
    """A partition of a broker. Partition 0 has segments 0, 400 and 800, last written to at noon, 1 pm and 2 pm."""
    server = start_broker()
    with Client(server.port) as client:
        for first in range(0, 50, 5):
            client.produce("clicks", *numbered(50)[first : first + 5])
        client.offsets("clicks", -1)
    files: list[Path] = sorted((server.config.data_dir / "clicks-0").glob("*.kafka"))
    assert [int(file.stem) for file in files] == [0, 400, 800]
    for hours, file in enumerate(files):
        os.utime(file, (0, NOON_S + 3600 * hours))
    return Partition07(
        connection=open_connection(server),
        topic="clicks",
        id=BrokerPartition(0, number),
        cluster=None,
        read_settings=ReadSettings(),
    )


@pytest.mark.parametrize(
    ("minutes", "offset"), [(-1, 0), (0, 0), (59, 0), (60, 400), (119, 400), (120, 800), (180, 800)]
)
def test_the_offset_at_a_time_is_the_newest_segment_not_written_to_since(
    minutes: int, offset: int, start_broker: StartBroker, open_connection: OpenConnection
) -> None:
    assert offset_at(partition(0, start_broker, open_connection), (NOON_S + 60 * minutes) * 1000) == offset


# The messages before a time can be in the first segment that was written to after it, but not in a later one.
@pytest.mark.parametrize(
    ("minutes", "end"), [(-1, 400), (0, 800), (59, 800), (60, 1000), (119, 1000), (120, 1000), (180, 1000)]
)
def test_the_end_for_a_time_is_that_of_the_first_segment_written_to_after_it(  # fault U17
    minutes: int, end: int, start_broker: StartBroker, open_connection: OpenConnection
) -> None:
    assert end_at(partition(0, start_broker, open_connection), (NOON_S + 60 * minutes) * 1000) == end


@pytest.mark.parametrize(("timestamp_ms", "offset"), [(-1, 0), (IN_A_YEAR_MS, 1000)])
def test_the_offset_at_an_early_time_is_the_earliest_and_at_a_future_time_the_latest(
    timestamp_ms: int, offset: int, start_broker: StartBroker, open_connection: OpenConnection
) -> None:
    assert offset_at(partition(0, start_broker, open_connection), timestamp_ms) == offset


def test_a_partition_that_was_never_written_begins_at_its_start(
    start_broker: StartBroker, open_connection: OpenConnection
) -> None:
    assert offset_at(partition(1, start_broker, open_connection), NOON_S) == 0


def test_a_broker_closes_the_connection_for_an_unknown_partition(
    start_broker: StartBroker, open_connection: OpenConnection
) -> None:
    with pytest.raises(ConnectionLost) as caught:
        offset_at(partition(7, start_broker, open_connection), NOON_S)
    assert caught.value.where.partition == "0-7"


@pytest.mark.parametrize(
    ("offset", "hours"), [(0, 0), (399, 0), (400, 1), (799, 1), (800, 2), (980, 2), (1000, None), (5000, None)]
)
def test_a_message_is_as_old_as_the_last_write_to_its_segment(
    offset: int, hours: int | None, start_broker: StartBroker, open_connection: OpenConnection
) -> None:
    now_ms = (NOON_S + 10 * 3600) * 1000
    time_ms = time_at(partition(0, start_broker, open_connection), offset, now_ms=now_ms)
    if hours is None:
        assert time_ms is None
    else:
        age_ms = (10 - hours) * 3_600_000
        assert isinstance(time_ms, int)
        assert age_ms <= now_ms - time_ms <= age_ms * 1.005


def test_an_offset_without_a_message_has_no_time(start_broker: StartBroker, open_connection: OpenConnection) -> None:
    assert time_at(partition(1, start_broker, open_connection), 0, now_ms=NOON_S * 1000) is None
