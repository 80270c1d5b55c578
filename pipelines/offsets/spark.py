"""Where a Spark streaming query ended: the newest batch of its checkpoint that it has committed.

`offsets/<batch>` is `v1`, a line of metadata, and a line for each source: of Kafka it is JSON, by topic and partition
the offsets where the batch ends. `commits/<batch>` says that the batch is done. A batch that was planned and not
committed is not counted: what a sink has of it already is the sink's matter.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka_io.model import BrokerPartition
from pipelines.offsets.handed import Handed, agreed, offset_from, text_of
from resources.errors import OffsetsUnreadable

_VERSION = "v1"
_NO_SOURCE = "-"


class SparkSource:
    """See Source. `path` is the query's checkpoint."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, topic: str) -> Handed:
        """See Source."""
        file = self._path / "offsets" / str(self._committed())
        told = ends_of(text_of(file), str(file))
        return agreed((id_, offset, str(file)) for name, id_, offset in told if name == topic)

    def _committed(self) -> int:
        """The newest committed batch."""
        batches = [int(one.name) for one in (self._path / "commits").glob("*") if one.name.isdecimal()]
        if not batches:
            raise OffsetsUnreadable(f"{self._path} is no checkpoint with a committed batch: commits/ has none")
        return max(batches)


def ends_of(text: str, name: str) -> Iterator[tuple[str, BrokerPartition, int | None]]:
    """Where each partition ends, in a file of the offset log.

    Raises:
        OffsetsUnreadable: it is none, or of another version, or tells of a source that is not Kafka.
    """
    lines = text.splitlines()
    if lines[:1] != [_VERSION] or not lines[2:]:
        raise OffsetsUnreadable(f"{name} is no offset log of version 1: it begins with {text[:20]!r}")
    for line in lines[2:]:
        if line != _NO_SOURCE:
            yield from _ends(line, name)


def _ends(line: str, name: str) -> Iterator[tuple[str, BrokerPartition, int | None]]:
    try:
        topics: Any = json.loads(line)
        for topic, parts in topics.items():
            for number, offset in parts.items():
                yield topic, BrokerPartition(None, int(number)), offset_from(offset, name)
    except (ValueError, AttributeError) as error:
        raise OffsetsUnreadable(f"{name} has a line that is not of Kafka's source: {line[:100]!r}") from error
