"""Times and offsets of partitions of 0.7. Messages have no times: the broker goes by segments (facts, 4)."""

from collections.abc import Mapping

from kafka_io.client.segment_times import last_written, segment_of
from kafka_io.client.v07.partition import MOST_OFFSETS, Partition07
from kafka_io.error_codes import check
from kafka_io.errors import Corrupt, KafkaIOError, placing
from kafka_io.model import BrokerPartition
from kafka_io.v07.messages import LATEST_TIME, Offsets, OffsetsAnswer


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
    segment = segment_of(offset, _offsets(partition, LATEST_TIME, MOST_OFFSETS))
    if segment is None:
        return None

    def ask(times: Mapping[BrokerPartition, int]) -> dict[BrokerPartition, int | None]:
        return {id_: _segment_before(partition, time_ms) for id_, time_ms in times.items()}

    found = last_written({partition.id: segment}, ask, now_ms=now_ms)[partition.id]
    assert not isinstance(found, KafkaIOError), "errors are raised here"
    return found


def _segment_before(partition: Partition07, time_ms: int) -> int | None:
    return next(iter(_offsets(partition, time_ms, 1)), None)


def _offsets(partition: Partition07, time_ms: int, most: int) -> tuple[int, ...]:
    with placing(partition.where):
        answer = partition.link.ask(Offsets(partition.topic, partition.id.partition, time_ms, most))
        assert isinstance(answer, OffsetsAnswer)
        check(answer.error, partition.where)
        if any(offset < 0 for offset in answer.offsets):
            raise Corrupt(f"offsets that cannot be right: {list(answer.offsets[:5])}")
        return answer.offsets
