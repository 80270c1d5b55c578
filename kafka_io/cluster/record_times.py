"""When the records at given offsets were written: the timestamps of records from 0.10 on, those of segments before.

No broker can be asked for the timestamp of a record, so the batch that contains the record is fetched and decoded. Many
partitions share a request. If the batch of a partition does not fit into the answer, it is fetched again with more
room.
"""

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.bounds import list_offsets
from kafka_io.cluster.first_records import FirstRecordSearch
from kafka_io.cluster.segment_times import segment_times
from kafka_io.messages.fetch import FetchRequest
from kafka_io.model import TopicPartition
from kafka_io.reader.reader import ReadSettings

_TIMESTAMPS_SINCE = 2  # version of Fetch that returns message format 1


def record_times(
    metadata: ClusterMetadata, offsets: Mapping[TopicPartition, int], read_settings: ReadSettings, *, now_ms: int
) -> PartitionAnswers[int | None]:
    """The time (ms) of the first record at or after each offset; see `Cluster.times_at`."""

    def ask(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[int | None]:
        pending = {partition: offsets[partition] for partition in leaders}
        if connection.versions.pick(FetchRequest.API) < _TIMESTAMPS_SINCE:
            return segment_times(pending, partial(list_offsets, connection, leaders), now_ms=now_ms)
        return FirstRecordSearch(connection, leaders, read_settings, pending, ("timestamp",), _time_ms).run()

    return ask_leaders(metadata, offsets, ask)


def _time_ms(rows: pa.RecordBatch) -> int | None:
    time_ms: int = rows.column("timestamp").cast(pa.int64())[0].as_py()
    return time_ms if time_ms >= 0 else None
