"""Reads again the last message before a position, to see whether the log is still the one that was read before."""

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.leaders import PartitionAnswers, PartitionLeaders, ask_leaders
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.first_records import FirstRecordSearch
from kafka_io.model import TopicPartition
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.last_message import LastMessage

_COLUMNS = ("offset", "timestamp", "key", "value")


def last_messages(
    metadata: ClusterMetadata, offsets: Mapping[TopicPartition, int], read_settings: ReadSettings
) -> PartitionAnswers[LastMessage | None]:
    """The message at exactly each offset; None if there is none, for example after compaction."""

    def ask(connection: ModernBrokerConnection, leaders: PartitionLeaders) -> PartitionAnswers[LastMessage | None]:
        pending = {partition: offsets[partition] for partition in leaders}
        found = partial(_message_at, offsets)
        return FirstRecordSearch(connection, leaders, read_settings, pending, _COLUMNS, found).run()

    return ask_leaders(metadata, offsets, ask)


def _message_at(
    offsets: Mapping[TopicPartition, int], partition: TopicPartition, rows: pa.RecordBatch
) -> LastMessage | None:
    return LastMessage.of(rows, 0) if rows.column("offset")[0].as_py() == offsets[partition] else None
