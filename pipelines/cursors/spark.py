"""Offsets of a Spark streaming query: the end of the newest committed batch in its checkpoint.

`offsets/<batch>` has the line `v1`, a line of metadata, and a line for each source. The line of a Kafka source is JSON:
by topic and partition, the offsets at which the batch ends. `commits/<batch>` exists if the batch is complete. A batch
that was planned but not committed does not count; whether the sink already has some of its rows cannot be seen here.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from kafka_io.model import BrokerPartition
from pipelines.cursors.imported import ImportedOffsets, PartitionOffset, merged, parse_offset, read_text
from resources.errors import OffsetsUnreadable

_VERSION = "v1"
_NO_SOURCE = "-"
_decode_source = msgspec.json.Decoder(dict[str, dict[str, int]]).decode


def spark_offsets(checkpoint: Path, topic: str) -> ImportedOffsets:
    """The offsets of a topic in the checkpoint of a query.

    Raises:
        OffsetsUnreadable: there is no committed batch, or its file has other contents.
    """
    file = checkpoint / "offsets" / str(_newest_batch(checkpoint))
    return merged(batch_ends(read_text(file), str(file)), topic)


def _newest_batch(checkpoint: Path) -> int:
    """The number of the newest committed batch."""
    batches = [int(file.name) for file in (checkpoint / "commits").glob("*") if file.name.isdecimal()]
    if not batches:
        raise OffsetsUnreadable(f"{checkpoint} is not a checkpoint with a committed batch: its folder commits is empty")
    return max(batches)


def batch_ends(text: str, name: str) -> Iterator[PartitionOffset]:
    """The offsets at which a batch ends. `text` is the contents of its file in `offsets`.

    Raises:
        OffsetsUnreadable: the file is of another version, or has a source other than Kafka.
    """
    lines = text.splitlines()
    if lines[:1] != [_VERSION] or not lines[2:]:
        raise OffsetsUnreadable(f"{name} is not an offset log of version 1: it begins with {text[:20]!r}")
    for line in lines[2:]:
        if line != _NO_SOURCE:
            yield from _source_ends(line, name)


def _source_ends(line: str, name: str) -> Iterator[PartitionOffset]:
    try:
        for topic, partitions in _decode_source(line).items():
            for number, offset in partitions.items():
                yield topic, BrokerPartition(None, int(number)), parse_offset(offset, name), name
    except ValueError as error:
        raise OffsetsUnreadable(f"{name} has a line that is not of a Kafka source: {line[:100]!r}") from error
