"""Estimates of the bytes per offset, which decide where slices are cut from 0.8 on.

There an offset counts a record, and slices of large records must hold fewer of them. Brokers before 1.0 do not report
how large a log is. The estimate comes from what the table's newest commit read of the partition. If that says nothing,
a small read of the first records gives it, which works with every version of Kafka. Bytes are those of decoded columns,
as in CommittedRange. A wrong estimate makes slices larger or smaller than they should be, and has no other effect.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from statistics import fmean

from kafka_io.brokers.retry import Backoff
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.reader import PlannedRange
from kafka_io.reader.source import Source
from pipelines.ledger.ledger import LedgerEntry
from pipelines.plan.slices import SliceSizes
from resources.settings.settings import Caps

_MAX_USUAL_RECORD_BYTES = 1024 * 1024  # the brokers' default limit
_MAX_SAMPLES = 3
_SAMPLE_OFFSETS = 256
_SAMPLE_BYTES = 64 * 1024


def sizes_by_bytes(
    caps: Caps,
    wanted: Sequence[OffsetRange],
    known: Mapping[BrokerPartition, float],
    sample: Callable[[OffsetRange], float | None],
) -> SliceSizes:
    """The slice sizes for the wanted ranges, one of each partition. `known` holds the bytes per offset of partitions.

    `sample` reads the first records of a range, and returns their bytes per offset or None.

    The largest of the unknown ranges are sampled, but only if all unknown ranges may be larger than one slice. The
    other partitions get the mean.
    """
    bytes_per_offset = dict(known)
    unknown = sorted(
        (offsets for offsets in wanted if offsets.partition not in known), key=lambda offsets: (-offsets.size, offsets)
    )
    # Otherwise all of them fit into one slice even if each record has the usual maximum, and a sample is a wasted
    # request.
    if sum(offsets.size for offsets in unknown) * _MAX_USUAL_RECORD_BYTES > caps.slice_decoded_bytes:
        sampled = {offsets.partition: sample(offsets) for offsets in unknown[:_MAX_SAMPLES]}
        bytes_per_offset |= {partition: estimate for partition, estimate in sampled.items() if estimate}
    slices = {partition: _target(caps, estimate) for partition, estimate in bytes_per_offset.items()}
    usual = _target(caps, fmean(bytes_per_offset.values())) if bytes_per_offset else caps.slice_records
    return SliceSizes(slice=usual, slices=slices, driver=caps.driver_slices)


def _target(caps: Caps, bytes_per_offset: float) -> int:
    return max(1, min(caps.slice_records, int(caps.slice_decoded_bytes / bytes_per_offset)))


def committed_bytes_per_offset(entry: LedgerEntry | None) -> dict[BrokerPartition, float]:
    """Bytes per offset of the partitions of which a commit has rows."""
    sums: dict[BrokerPartition, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for committed in entry.ranges if entry else ():
        if committed.rows and committed.bytes:
            size_bytes, offsets = sums[committed.partition]
            sums[committed.partition] = (size_bytes + committed.bytes, offsets + committed.offsets.size)
    return {partition: size_bytes / offsets for partition, (size_bytes, offsets) in sums.items()}


def read_sample(source: Source, planned: PlannedRange) -> float | None:
    """The bytes per offset of the range's first records: one small fetch, or one batch if that is larger; no retry.

    Errors are left to the load: it meets them again and reports them.
    """
    start = planned.offsets.start
    stop = min(planned.offsets.stop, start + _SAMPLE_OFFSETS)
    first_offsets = replace(planned, offsets=replace(planned.offsets, stop=stop))
    try:
        with closing(_for_sample(source).open()) as reader:
            batches = (decoded for batches in reader.read([first_offsets]) for decoded in batches)
            first = next(batches, None)
    except KafkaIOError:
        return None
    return first.batch.nbytes / (first.next_offset - start) if first else None


def _for_sample(source: Source) -> Source:
    """The source with small fetches and without retries."""
    settings = source.read_settings
    size = min(_SAMPLE_BYTES, settings.sizes.fetch_bytes)
    return replace(
        source,
        read_settings=replace(
            settings,
            sizes=replace(settings.sizes, fetch_bytes=size),
            limits=replace(settings.limits, batch_bytes=size),
            retry_policy=replace(settings.retry_policy, backoff=Backoff(attempts=1)),
        ),
    )
