"""Offsets of Camus: the keys in the newest run of its execution history.

The history has a folder for each run, named by its time, with SequenceFiles `offsets-*`. Their keys are EtlKeys: one
per partition, with the next offset to read. `offsets-previous` has the offsets at which the run began, the other files
those at which it ended, so the largest offset of a partition counts, as in Camus itself.

    EtlKey: uint16 n | n bytes broker | int32 partition | int64 begin | int64 next offset | int64 checksum
            | uint16 n | n bytes topic | int64 time | ...

The fields after the topic are not needed here. The layout is taken from the published source code of Camus; no file of
a genuine run was available. In 0.7 the broker is part of a partition's name; in later versions it is only the leader
at that time.
"""

from pathlib import Path
from typing import NamedTuple

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import Corrupt
from kafka_io.model import BrokerPartition
from kafka_io.wire.primitives import WireReader
from pipelines.cursors.imported import ImportedOffsets, damaged_file, files_in, read_bytes
from pipelines.cursors.sequence_file import SequenceFile
from resources.errors import OffsetsUnreadable

_KEY = "com.linkedin.camus.etl.kafka.common.EtlKey"
_FILES = "offsets-"


class EtlKey(NamedTuple):
    """The key of one partition. `offset` is the next one to read."""

    broker: str
    topic: str
    partition: int
    offset: int


def camus_offsets(cluster: Cluster, path: Path, topic: str) -> ImportedOffsets:
    """The offsets of a topic. `path` is an execution history, one of its runs, or one file.

    Raises:
        OffsetsUnreadable: there are no such files, or they have other contents.
    """
    offsets: dict[BrokerPartition, int] = {}
    for file in files_in(_newest_run(path), _FILES):
        for key in keys_in(read_bytes(file), file.name):
            if key.topic == topic:
                id_ = BrokerPartition(_broker_id(key) if cluster.partitions_have_brokers else None, key.partition)
                offsets[id_] = max(offsets.get(id_, 0), key.offset)
    return offsets


def _broker_id(key: EtlKey) -> int:
    if not key.broker.isdecimal():
        raise OffsetsUnreadable(f"{key.broker!r} is not a broker id (topic {key.topic}, partition {key.partition})")
    return int(key.broker)


def _newest_run(path: Path) -> Path:
    """The run whose name is the last in order, as Camus chooses it; `path` itself if it is a run or a file."""
    if path.is_file() or any(path.glob(f"{_FILES}*")):
        return path
    return max((folder for folder in path.glob("[!._]*") if folder.is_dir()), default=path)


def keys_in(data: bytes, name: str) -> list[EtlKey]:
    """The keys of a file with the contents `data`.

    Raises:
        OffsetsUnreadable: the file has other contents.
    """
    file = SequenceFile.parse(data, name)
    if file.key_class != _KEY:
        raise OffsetsUnreadable(f"{name} was not written by Camus: its keys are of the class {file.key_class}")
    with damaged_file(name):
        return [_parse_key(key) for key, _ in file.records]


def _parse_key(data: bytes) -> EtlKey:
    reader = WireReader(data)
    broker, partition = reader.text(reader.int16()), reader.int32()
    _, offset, _ = reader.int64(), reader.int64(), reader.int64()  # begin | next offset | checksum
    topic = reader.text(reader.int16())
    if partition < 0 or offset < 0:
        raise Corrupt(f"partition {partition} at offset {offset}")
    return EtlKey(broker=broker, topic=topic, partition=partition, offset=offset)
