"""How many bytes an offset stands for: what slices from 0.8 on are cut by, so that large records make small slices.

Offsets there count records, and no broker before 1.0 tells how large a log is. So it is estimated: by what the table's
newest commit took of the partition, and where that says nothing by a look at the first records that are to be loaded,
which works in every generation. Bytes are those of decoded columns, as in Facts. An estimate that is wrong makes slices
larger or smaller than they should be, and nothing else.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from statistics import fmean

from kafka_io.client.link import Patience
from kafka_io.client.reading import FetchSizes, Span
from kafka_io.client.retry import Backoff
from kafka_io.client.source import Source
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Entry
from pipelines.loading.slices import Sizes, Slice
from resources.settings import Caps

Sample = Callable[[Source, Span], float | None]
"""Bytes per offset at the beginning of a span; None if that cannot be told."""

_USUAL_RECORD_BYTES = 1024 * 1024  # the largest that brokers take unless they are told otherwise
_SAMPLED = 3
_SAMPLE_OFFSETS = 256
_SAMPLE_BYTES = 64 * 1024


def sizes_by_bytes(
    caps: Caps, wanted: Sequence[Slice], known: Mapping[BrokerPartition, float], sample: Callable[[Slice], float | None]
) -> Sizes:
    """The sizes for what is wanted, a range of each partition; a few of those that are not known are sampled.

    That is done only where they may come to more than a slice. A partition that is neither known nor sampled is taken
    for one like the others.
    """
    found = dict(known)
    unknown = sorted((one for one in wanted if one.id not in found), key=lambda one: (-one.size, one.place))
    if sum(one.size for one in unknown) * _USUAL_RECORD_BYTES > caps.slice_decoded_bytes:
        told = {one.id: sample(one) for one in unknown[:_SAMPLED]}
        found |= {id_: density for id_, density in told.items() if density}
    slices = {id_: _target(caps, density) for id_, density in found.items()}
    return Sizes(slice=_target(caps, fmean(found.values())) if found else caps.slice_records, slices=slices)


def _target(caps: Caps, density: float) -> int:
    return max(1, min(caps.slice_records, int(caps.slice_decoded_bytes / density)))


def densities(entry: Entry | None) -> dict[BrokerPartition, float]:
    """Bytes per offset of the partitions of which a commit took rows."""
    sums: dict[BrokerPartition, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for one in entry.ranges if entry else ():
        if one.rows and one.bytes:
            size, offsets = sums[one.id]
            sums[one.id] = (size + one.bytes, offsets + one.stop - one.start)
    return {id_: size / offsets for id_, (size, offsets) in sums.items()}


def read_sample(source: Source, span: Span) -> float | None:
    """Look at the first records of the span: one small fetch, or one batch if that is larger, and no retry.

    Whatever is wrong there is not for an estimate to tell: the load meets it again, and says so.
    """
    few = replace(span, stop=min(span.stop, span.start + _SAMPLE_OFFSETS))
    try:
        with closing(_hasty(source).open()) as reader:
            first = next((one for batches in reader.read([few]) for one in batches), None)
    except KafkaIOError:
        return None
    return first.batch.nbytes / (first.next_offset - few.start) if first else None


def _hasty(source: Source) -> Source:
    reading = source.reading
    size = min(_SAMPLE_BYTES, reading.sizes.fetch_bytes)
    return replace(
        source,
        reading=replace(
            reading,
            sizes=FetchSizes(fetch_bytes=size, max_fetch_bytes=reading.sizes.max_fetch_bytes),
            limits=replace(reading.limits, batch_bytes=size),
            patience=Patience(timeout_s=reading.patience.timeout_s, backoff=Backoff(attempts=1)),
        ),
    )
