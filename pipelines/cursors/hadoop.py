"""Offsets of the Hadoop consumer of 0.7: the request lines in its offset files [kafka-0.7: Hadoop consumer].

A line is `tcp://host:port <tab> topic <tab> partition <tab> offset`, as the value of a SequenceFile. It names a broker
by its address, so a broker must still be registered there.

The offsets may be wrong. A line can end with the tail of a longer line before it (15 became 15234). An offset beyond
the log's end is copied from run to run. If a limit cut a compressed message, the offset is the start of that message,
although a part of it was loaded. Therefore all lines of a partition must agree, and the import checks that a message
starts at the offset.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kafka_io.cluster.cluster import Cluster
from kafka_io.model import BrokerPartition
from pipelines.cursors.imported import ImportedOffsets, PartitionOffset, files_in, merged, parse_offset, read_bytes
from pipelines.cursors.sequence_file import SequenceFile
from resources.errors import OffsetsUnreadable

_KEY = "kafka.etl.KafkaETLKey"
_VALUE = "org.apache.hadoop.io.BytesWritable"
_FILES = "offsets_"
_LINE = re.compile(r"tcp://([^\t]+)\t([^\t]+)\t([0-9]{1,9})\t([^\t]+)")


class HadoopRequest(NamedTuple):
    """A request line: the next offset of a partition of the broker at `address`. None means its earliest offset."""

    address: str
    topic: str
    partition: int
    offset: int | None


def hadoop_offsets(cluster: Cluster, path: Path, topic: str) -> ImportedOffsets:
    """The offsets of a topic. `path` is the output folder of a job, or one offset file.

    Raises:
        OffsetsUnreadable: the cluster is not of 0.7; there are no such files, or they have other contents.
    """
    if not cluster.partitions_have_brokers:
        raise OffsetsUnreadable(
            "the Hadoop consumer reads only clusters of Kafka 0.7; this cluster has a later version"
        )
    broker_ids = {broker.address: broker.id for broker in cluster.brokers_by_id().values()}
    return merged(_entries(path, topic, broker_ids), topic)


def _entries(path: Path, topic: str, broker_ids: Mapping[str, int]) -> Iterator[PartitionOffset]:
    for file in files_in(path, _FILES):
        for request in requests_in(read_bytes(file), file.name):
            if request.topic != topic:
                continue
            if request.address not in broker_ids:
                raise OffsetsUnreadable(
                    f"no broker is registered at {request.address}, which {file.name} names for partition "
                    f"{request.partition}"
                )
            yield topic, BrokerPartition(broker_ids[request.address], request.partition), request.offset, file.name


def requests_in(data: bytes, name: str) -> list[HadoopRequest]:
    """The request lines of a file with the contents `data`.

    Raises:
        OffsetsUnreadable: the file has other contents.
    """
    file = SequenceFile.parse(data, name)
    if (file.key_class, file.value_class) != (_KEY, _VALUE):
        raise OffsetsUnreadable(
            f"{name} was not written by the Hadoop consumer: it holds {file.key_class} and {file.value_class}"
        )
    if file.compressed:
        raise OffsetsUnreadable(f"{name} is compressed, but the Hadoop consumer never compresses its offset files")
    return [_parse_request(value, name) for _, value in file.records]


def _parse_request(value: bytes, name: str) -> HadoopRequest:
    """A BytesWritable: int32 length | bytes."""
    line = _LINE.fullmatch(value[4:].decode("utf-8", "replace"))
    if line is None or value[:4] != struct.pack(">i", len(value) - 4):
        raise OffsetsUnreadable(f"{name} has a value that is not a request line: {value[:200]!r}")
    address, topic, partition, offset = line.groups()
    return HadoopRequest(address=address, topic=topic, partition=int(partition), offset=parse_offset(offset, name))
