"""Times and offsets of partitions of 0.7. Messages have no times: the broker goes by segments [kafka-0.7: OFFSETS]."""

from collections.abc import Mapping

from kafka_io.cluster.segment_times import last_written, segment_of
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition
from kafka_io.reader.v07_partition import MAX_SEGMENTS, Partition07
from kafka_io.v07.messages import LATEST_TIME


def offset_at(partition: Partition07, timestamp_ms: int) -> int:
    """The start of the newest segment that was last written to at `timestamp_ms` or before, else the earliest offset.

    What is older than that may follow, but nothing younger lies before it. Of a time to come it is the latest.

    Raises:
        Corrupt: an offset that cannot be right.
        NetworkError: no answer; a genuine broker closes the connection when it has no such partition.
    """
    # Below 0 the wire has names, not times.
    start = _segment_before(partition, max(timestamp_ms, 0))
    return partition.bounds().earliest if start is None else start


def time_at(partition: Partition07, offset: int, *, now_ms: int) -> int | None:
    """When the segment that holds the message at `offset` was last written to, see `last_written`.

    Of an offset before the log it is that of the first segment; None at its end, where there is no message.

    Raises:
        Corrupt: an offset that cannot be right.
        NetworkError: no answer; a genuine broker closes the connection when it has no such partition.
    """
    segment = segment_of(offset, partition.segment_offsets(LATEST_TIME, MAX_SEGMENTS))
    if segment is None:
        return None

    def ask(times: Mapping[BrokerPartition, int]) -> dict[BrokerPartition, int | None]:
        return {id_: _segment_before(partition, time_ms) for id_, time_ms in times.items()}

    found = last_written({partition.id: segment}, ask, now_ms=now_ms)[partition.id]
    assert not isinstance(found, KafkaIOError), "errors are raised here"
    return found


def _segment_before(partition: Partition07, time_ms: int) -> int | None:
    return next(iter(partition.segment_offsets(time_ms, 1)), None)
