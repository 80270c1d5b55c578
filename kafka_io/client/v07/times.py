"""Where to read a partition of 0.7 from a time on. Messages have none: the broker goes by segments (facts, 4)."""

from kafka_io.client.v07.partition import Partition07
from kafka_io.error_codes import check
from kafka_io.errors import Corrupt, placing
from kafka_io.v07.messages import Offsets, OffsetsAnswer


def offset_at(partition: Partition07, timestamp_ms: int) -> int:
    """The start of the newest segment that was last written to at `timestamp_ms` or before, else the earliest offset.

    What is older than that may follow, but nothing younger lies before it. Of a time to come it is the latest.

    Raises:
        Corrupt: an offset that cannot be right.
        NetworkError: no answer; a genuine broker closes the connection when it has no such partition.
    """
    with placing(partition.where):
        # Below 0 the wire has names, not times.
        request = Offsets(partition.topic, partition.id.partition, max(timestamp_ms, 0), 1)
        answer = partition.link.ask(request)
        assert isinstance(answer, OffsetsAnswer)
        check(answer.error, partition.where)
        if not answer.offsets:
            return partition.bounds().earliest
        [offset] = answer.offsets[:1]
        if offset < 0:
            raise Corrupt(f"an offset of {offset}")
        return offset
