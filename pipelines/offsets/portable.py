"""Offsets as text: the CSV that Kafka's own tools take, and our JSON, which tells clusters apart.

CSV: `topic,partition,offset`, no header, as `kafka-consumer-groups --reset-offsets --from-file` reads it. A partition
of 0.7 is `<broker>-<partition>`, which only we read.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_io.model import BrokerPartition
from pipelines.offsets.handed import Handed, agreed, offset_from, text_of
from resources.errors import OffsetsUnreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The next offset of one partition of a table."""

    cluster: str
    topic: str
    id: BrokerPartition
    offset: int

    def as_dict(self) -> dict[str, Any]:
        """As `penstock offsets export --json` prints it."""
        return {
            "cluster": self.cluster,
            "topic": self.topic,
            "broker": self.id.broker,
            "partition": self.id.partition,
            "offset": self.offset,
        }


def to_csv(cursors: Iterable[Cursor]) -> str:
    """The CSV of the cursors."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((one.topic, str(one.id), one.offset) for one in cursors)
    return text.getvalue()


class FileSource:
    """See Source. The file is what `penstock offsets export` printed, for this cluster."""

    def __init__(self, path: Path, *, cluster: str) -> None:
        self._path = path
        self._cluster = cluster

    def __call__(self, topic: str) -> Handed:
        """See Source."""
        text = text_of(self._path)
        told = _of_json(text, self._cluster) if text.lstrip().startswith("[") else _of_csv(text)
        try:
            return agreed((id_, offset, str(self._path)) for name, id_, offset in told if name == topic)
        except (ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
            raise OffsetsUnreadable(f"{self._path} is not what `penstock offsets export` prints: {error!r}") from error


def _of_json(text: str, cluster: str) -> Iterator[tuple[str, BrokerPartition, int | None]]:
    for number, one in enumerate(json.loads(text), 1):
        if one["cluster"] == cluster:
            partition = one["partition"] if one["broker"] is None else f"{one['broker']}-{one['partition']}"
            yield one["topic"], BrokerPartition.parse(str(partition)), offset_from(one["offset"], f"entry {number}")


def _of_csv(text: str) -> Iterator[tuple[str, BrokerPartition, int | None]]:
    for line, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if row:
            topic, partition, offset = row
            yield topic, BrokerPartition.parse(partition), offset_from(offset, f"line {line}")
