"""Where Camus ended: the keys in the newest run of its execution history.

Each run has a folder there, named by its time, with SequenceFiles `offsets-*` whose keys are EtlKeys: one per partition
with the next offset to read. `offsets-previous` tells where the run began, the others where it ended, so the largest of
a partition counts, as it does for Camus itself.

    EtlKey: uint16 n | n bytes broker | int32 partition | int64 begin | int64 next offset | int64 checksum
            | uint16 n | n bytes topic | int64 time | ...

What follows is of no use here. Written after the code that Camus published; no file of a genuine run was at hand.
The broker is part of a partition's name in 0.7 only: later it is who led it then.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafka_io.client.cluster import Cluster
from kafka_io.client.v07.cluster import Cluster07
from kafka_io.model import BrokerPartition
from pipelines.offsets.handed import Handed, contents_of, files_in
from pipelines.offsets.sequence_file import ByteReader, SequenceFile
from resources.errors import OffsetsUnreadable

_KEY = "com.linkedin.camus.etl.kafka.common.EtlKey"
_FILES = "offsets-"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtlKey:
    """What a key says of one partition: `offset` is the next to read."""

    broker: str
    topic: str
    partition: int
    offset: int


def camus_source(cluster: Cluster, path: Path) -> "CamusSource":
    """The execution history at `path`, or one run of it, for this cluster."""
    return CamusSource(path, with_brokers=isinstance(cluster, Cluster07))


class CamusSource:
    """See Source. In 0.7 partitions have brokers."""

    def __init__(self, path: Path, *, with_brokers: bool) -> None:
        self._path = path
        self._with_brokers = with_brokers

    def __call__(self, topic: str) -> Handed:
        """See Source."""
        found: dict[BrokerPartition, int | None] = {}
        for one in self._keys():
            if one.topic == topic:
                id_ = self._id(one)
                found[id_] = max(found.get(id_) or 0, one.offset)
        return found

    def _keys(self) -> Iterator[EtlKey]:
        for file in files_in(newest_run(self._path), _FILES):
            yield from keys_in(contents_of(file), file.name)

    def _id(self, one: EtlKey) -> BrokerPartition:
        if not self._with_brokers:
            return BrokerPartition(None, one.partition)
        if not one.broker.isdecimal():
            raise OffsetsUnreadable(f"{one.broker!r} is no broker, of partition {one.partition}")
        return BrokerPartition(int(one.broker), one.partition)


def newest_run(path: Path) -> Path:
    """The last run of a history, in order of names as Camus has it; `path` itself if it is a run or a file."""
    if path.is_file() or any(path.glob(f"{_FILES}*")):
        return path
    return max((one for one in path.glob("[!._]*") if one.is_dir()), default=path)


def keys_in(data: bytes, name: str) -> list[EtlKey]:
    """The keys of an offset file.

    Raises:
        OffsetsUnreadable: it is none, or one of them is no such key.
    """
    file = SequenceFile.parse(data, name)
    if file.key_class != _KEY:
        raise OffsetsUnreadable(f"{name} has keys of {file.key_class}: not Camus's")
    return [_key(one.key, name) for one in file.records]


def _key(data: bytes, name: str) -> EtlKey:
    reader = ByteReader(data, name)
    broker = reader.utf8(reader.number(">H"))
    partition, _, offset, _ = reader.number(">i"), reader.number(">q"), reader.number(">q"), reader.number(">q")
    topic = reader.utf8(reader.number(">H"))
    if partition < 0 or offset < 0:
        raise reader.wrong(f"partition {partition} at offset {offset}")
    return EtlKey(broker=broker, topic=topic, partition=partition, offset=offset)
