"""Where the Hadoop consumer of 0.7 ended: the request lines in its own offset files (facts, 9).

A line is `tcp://host:port <tab> topic <tab> partition <tab> offset`, as the value of a SequenceFile. It names a broker
by its address, so that broker must be registered there still.

Its offsets are not to be believed by themselves. A line may have got the tail of a longer one before it (15 became
15234); one beyond the log's end is handed on, run after run; and where a limit cut a compressed message, the offset is
that message's start although some of it was loaded. So lines that tell of the same partition must agree, and who
imports them looks whether the log has a message there.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_io.client.cluster import Cluster
from kafka_io.client.v07.cluster import Cluster07
from kafka_io.model import BrokerPartition
from pipelines.offsets.handed import Handed, agreed, contents_of, files_in, offset_from
from pipelines.offsets.sequence_file import SequenceFile
from resources.errors import OffsetsUnreadable

_KEY = "kafka.etl.KafkaETLKey"
_VALUE = "org.apache.hadoop.io.BytesWritable"
_FILES = "offsets_"
_LINE = re.compile(r"tcp://([^\t]+)\t([^\t]+)\t([0-9]{1,9})\t([^\t]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request line: go on with this partition of the broker at `address` from there; None is its earliest."""

    address: str
    topic: str
    partition: int
    offset: int | None


def hadoop_source(cluster: Cluster, path: Path) -> "HadoopSource":
    """The offset files of a job's output, or one of them, for a cluster of 0.7.

    Raises:
        OffsetsUnreadable: the cluster is a later one.
    """
    if not isinstance(cluster, Cluster07):
        raise OffsetsUnreadable("the Hadoop consumer reads clusters of 0.7, and this is a later one")
    brokers = {broker.address: broker.id for broker in cluster.brokers().values()}
    return HadoopSource(path, brokers)


class HadoopSource:
    """See Source. `brokers` are the ids of brokers by their addresses."""

    def __init__(self, path: Path, brokers: Mapping[str, int]) -> None:
        self._path = path
        self._brokers = brokers

    def __call__(self, topic: str) -> Handed:
        """See Source."""
        return agreed(self._told(topic))

    def _told(self, topic: str) -> Iterator[tuple[BrokerPartition, int | None, str]]:
        for file in files_in(self._path, _FILES):
            for one in requests_in(contents_of(file), file.name):
                if one.topic == topic:
                    yield self._id(one), one.offset, file.name

    def _id(self, one: Request) -> BrokerPartition:
        if one.address not in self._brokers:
            raise OffsetsUnreadable(f"no broker is registered at {one.address}, which has partition {one.partition}")
        return BrokerPartition(self._brokers[one.address], one.partition)


def requests_in(data: bytes, name: str) -> list[Request]:
    """The request lines of an offset file.

    Raises:
        OffsetsUnreadable: it is none, or one of them is no such line.
    """
    file = SequenceFile.parse(data, name)
    if (file.key_class, file.value_class) != (_KEY, _VALUE):
        raise OffsetsUnreadable(f"{name} holds {file.key_class} and {file.value_class}: not the Hadoop consumer's")
    if file.compressed:
        raise OffsetsUnreadable(f"{name} is compressed, as the Hadoop consumer's offset files never are")
    return [_request(one.value, name) for one in file.records]


def _request(value: bytes, name: str) -> Request:
    """A BytesWritable: int32 length | bytes."""
    line = _LINE.fullmatch(value[4:].decode("utf-8", "replace"))
    if line is None or value[:4] != struct.pack(">i", len(value) - 4):
        raise OffsetsUnreadable(f"{name} has a value that is no request line: {value[:200]!r}")
    address, topic, partition, offset = line.groups()
    return Request(address=address, topic=topic, partition=int(partition), offset=offset_from(offset, name))
