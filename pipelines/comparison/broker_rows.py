"""The rows of a topic as its brokers hold them now, read as a load reads them."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

import pyarrow as pa

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import Broker, OffsetRange, TopicEntry
from kafka_io.reader.reader import PlannedRange, Reader
from kafka_io.reader.source import Source
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.fetch import COMMITTED
from pipelines.fetch.left_out import records_without
from pipelines.fetch.typed_rows import IncompletePlan, TypedRows
from pipelines.layout.layout import RAW
from pipelines.layout.rows import table_rows
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.exact_offsets import NO_OFFSETS, ExactOffsets
from resources.errors import LogTruncated


class BrokerRows(ExitStack):
    """Reads the brokers' rows of one topic. One reader serves all partitions that have the same brokers.

    `decoding` says how values are decoded; None for the rows of a raw table.

    Attributes:
        inferred: the columns of the table, if values show which there are.
        not_compared: columns of the table that say nothing about the brokers, because its rules have changed.
        gaps: the number of offsets without a row since `gaps` was last emptied, by cause.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: TopicEntry,
        decoding: Decoding | None = None,
        *,
        not_compared: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.not_compared = not_compared
        self._decoding = decoding
        self._typed = TypedRows(decoding.plan) if decoding and decoding.plan else None
        self.inferred = decoding.inferred if decoding else ()
        self._cluster = cluster
        self._topic = topic
        self._readers: dict[tuple[tuple[Broker, ...], bool], Reader] = {}
        self.gaps: Counter[str] = Counter()

    def retained(self, ranges: Sequence[CommittedRange]) -> OffsetRange:
        """The offsets of a partition's ranges that its broker still holds.

        Raises:
            KafkaIOError: the broker does not say it.
            LogTruncated: the log ends before the ranges do.
        """
        partition, first, cursor = ranges[0].partition, ranges[0].offsets.start, ranges[-1].offsets.stop
        bounds = self._cluster.bounds(self._topic.name, [partition])[partition]
        if isinstance(bounds, KafkaIOError):
            raise bounds
        if bounds.latest < cursor:
            raise LogTruncated(
                f"the log ends at {bounds.latest}, but the table at {cursor}; load the topic, which says what to do"
            )
        return OffsetRange(partition, min(max(first, bounds.earliest), cursor), cursor)

    def batches(
        self, offsets: OffsetRange, isolation: str, *, without: ExactOffsets = NO_OFFSETS
    ) -> Iterator[pa.RecordBatch]:
        """The rows of these offsets, but for some; an empty isolation stands for that of the settings.

        Raises:
            KafkaIOError: they cannot be read.
        """
        source = self._cluster.source(offsets.partition)
        if isolation:
            settings = replace(source.read_settings, committed=isolation == COMMITTED)
            source = replace(source, read_settings=settings)
        planned = PlannedRange(topic=self._topic.name, offsets=offsets, incarnation=self._topic.incarnation)
        for decoded in (decoded for batches in self._reader(source).read([planned]) for decoded in batches):
            self.gaps.update(decoded.gaps)
            # Records of other tables of the topic have other schemas, and their fields belong into no column here.
            if (batch := records_without(decoded.batch, without)).num_rows:
                yield self._rows(batch)

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch. Schemas that are not known yet are asked for, and new fields get columns."""
        if self._typed is None:
            rows = table_rows(batch, {})
            return self._decoding.rules.applied(rows, RAW) if self._decoding else rows
        while True:
            try:
                return self._typed.rows(batch, {})
            except IncompletePlan as missing:
                assert self._decoding is not None
                self._decoding.learn_from([missing.needs])
                assert self._decoding.plan is not None
                self._typed = TypedRows(self._decoding.plan)

    def _reader(self, source: Source) -> Reader:
        key = (source.brokers, source.read_settings.committed)
        if key not in self._readers:
            self._readers[key] = self.enter_context(closing(source.open()))
        return self._readers[key]

    def drop(self) -> None:
        """Close all readers: after an error, an answer that nobody has read may be left on a connection."""
        self._readers.clear()
        self.close()
