"""Export of the cursors of tables: to a consumer group, as CSV for Kafka's own tools, or as JSON.

CSV: `topic,partition,offset`, no header, as `kafka-consumer-groups --reset-offsets --from-file` reads it. A partition
of 0.7 is `<broker>-<partition>`, which only Penstock reads. JSON also names the cluster.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kafka_io.cluster.cluster import Cluster
from kafka_io.consumer.group_offsets import OffsetStorage, group_offsets
from kafka_io.model import BrokerPartition
from pipelines.cursors.imported import ImportedOffsets, PartitionOffset, merged, parse_offset, read_text
from pipelines.table.lake_table import LakeTable
from resources.errors import OffsetsUnreadable, TableMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCursor:
    """A result of `penstock offsets export`.

    It is the next offset of one partition of a table.
    """

    cluster: str
    topic: str
    broker: int | None
    partition: int
    offset: int

    @property
    def id(self) -> BrokerPartition:
        """The broker-partition."""
        return BrokerPartition(self.broker, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportedJson:
    """The JSON of `penstock offsets export`. Versions up to 0.6 printed the list of its `results` alone."""

    results: list[ExportedCursor]


_decode_cursors = msgspec.json.Decoder(list[ExportedCursor] | _ExportedJson).decode


def cursors_of(table: LakeTable, cluster: str, topic: str) -> list[ExportedCursor]:
    """The cursors of a topic's table, sorted by partition; empty before its first load.

    Raises:
        TableMissing: there is no table.
        LoadError: the table cannot be read.
    """
    snapshot = table.existing()
    if snapshot is None:
        raise TableMissing(f"there is no table {table.uri}", table.where)
    covered = snapshot.entry.covered if snapshot.entry else {}
    return [
        ExportedCursor(cluster=cluster, topic=topic, broker=id_.broker, partition=id_.partition, offset=end)
        for id_, (_, end) in sorted(covered.items())
    ]


def write_cursors(
    cluster: Cluster, group: str, cursors: Iterable[ExportedCursor], storage: OffsetStorage | None = None
) -> None:
    """Commit the cursors as the offsets of a consumer group.

    Raises:
        KafkaIOError: see GroupOffsets.commit.
    """
    offsets: dict[str, dict[BrokerPartition, int]] = {}
    for cursor in cursors:
        offsets.setdefault(cursor.topic, {})[cursor.id] = cursor.offset
    group_offsets(cluster, storage).commit(group, offsets)


def to_csv(cursors: Iterable[ExportedCursor]) -> str:
    """The cursors as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((cursor.topic, str(cursor.id), cursor.offset) for cursor in cursors)
    return text.getvalue()


def exported_offsets(path: Path, topic: str, *, cluster: str) -> ImportedOffsets:
    """The offsets of a topic in a file that `penstock offsets export` printed for this cluster.

    Raises:
        OffsetsUnreadable: the file cannot be read, or has other contents.
    """
    text = read_text(path)
    is_json = text.lstrip().startswith(("[", "{"))
    try:
        return merged(_parse_json(text, str(path), cluster) if is_json else _parse_csv(text, str(path)), topic)
    except (ValueError, csv.Error) as error:
        raise OffsetsUnreadable(
            f"{path} is not the output of `penstock offsets export` with --csv or --json; export the offsets again"
        ) from error


def _parse_json(text: str, file: str, cluster: str) -> Iterator[PartitionOffset]:
    decoded = _decode_cursors(text)
    cursors = decoded.results if isinstance(decoded, _ExportedJson) else decoded
    for number, cursor in enumerate(cursors, 1):
        if cursor.cluster == cluster:
            yield cursor.topic, cursor.id, parse_offset(cursor.offset, f"entry {number}"), file


def _parse_csv(text: str, file: str) -> Iterator[PartitionOffset]:
    for line, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if row:
            topic, partition, offset = row
            yield topic, BrokerPartition.parse(partition), parse_offset(offset, f"line {line}"), file
