"""Finds the offsets at which days begin in a log. Slices end there, so that each slice of a backlog has few days.

Only tables with folders of days need that: a slice has at most 16 open days. The brokers know for each time the offset
of the first record that is not older. So the cuts are exact if the times of a log ascend, and near enough if records
come late. A wrong answer only makes slices with more days or smaller slices: it loses no row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.layout.event_days import EARLIEST_DAY, MAX_OPEN_DAYS

DayCuts = Mapping[BrokerPartition, tuple[int, ...]]
"""Offsets of each partition at which a slice ends and the next one begins, ascending."""
_DAY_MS = 24 * 60 * 60 * 1000
_DAYS_PER_OLD_CUT = MAX_OPEN_DAYS // 2  # so that late records have open days too


def day_cuts(cluster: Cluster, topic: str, wanted: Iterable[OffsetRange], *, now_ms: int) -> DayCuts:
    """The cuts inside of the wanted ranges: one per day at first, and one per 8 days for older records.

    A load of today's records asks the brokers once. For a backlog it takes about two questions for each day that has
    records. A partition whose broker gives no answer gets no cuts.
    """
    search = _DaySearch(cluster, topic, wanted, tomorrow=now_ms // _DAY_MS + 1)
    return search.cuts()


class _DaySearch:
    """Finds the days that have records in ranges of partitions, by halving the time."""

    def __init__(self, cluster: Cluster, topic: str, wanted: Iterable[OffsetRange], *, tomorrow: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._tomorrow = tomorrow
        self._ranges: dict[BrokerPartition, OffsetRange] = {}
        for offsets in (offsets for offsets in wanted if offsets.size and offsets.partition.broker is None):
            known = self._ranges.get(offsets.partition, offsets)  # a backfill comes with the newest offsets
            start, stop = min(known.start, offsets.start), max(known.stop, offsets.stop)
            self._ranges[offsets.partition] = replace(offsets, start=start, stop=stop)
        self._offsets: dict[int, dict[BrokerPartition, int]] = {
            EARLIEST_DAY: {partition: offsets.start for partition, offsets in self._ranges.items()},
            tomorrow: {partition: offsets.stop for partition, offsets in self._ranges.items()},
        }

    def cuts(self) -> DayCuts:
        """The offsets at which the found days begin."""
        today = self._tomorrow - 1
        # A table that is loaded every day has records of today and yesterday only. It is done after one or two
        # questions.
        if self._ranges and self._tomorrow > EARLIEST_DAY + 2 and self._has_older(today) and self._has_older(today - 1):
            self._search(EARLIEST_DAY, today - 1)
        return {
            partition: tuple(sorted({day[partition] for day in self._offsets.values()} - {offsets.start, offsets.stop}))
            for partition, offsets in self._ranges.items()
        }

    def _has_older(self, day: int) -> bool:
        """Whether a range has records before the begin of the day; this asks the brokers."""
        answers = self._cluster.offsets_at(self._topic, list(self._ranges), day * _DAY_MS)
        # A partition without an answer counts as if all its records were newer, so it gets no cut. An answer may lie
        # outside of the range, because the log has changed since.
        known = {partition: answer for partition, answer in answers.items() if not isinstance(answer, KafkaIOError)}
        self._offsets[day] = {
            partition: min(max(known.get(partition, offsets.start), offsets.start), offsets.stop)
            for partition, offsets in self._ranges.items()
        }
        return self._offsets[day] != self._offsets[EARLIEST_DAY]

    def _search(self, first: int, last: int) -> None:
        """Find the days between two days, whose offsets are known."""
        is_recent = last > self._tomorrow - MAX_OPEN_DAYS
        if last - first <= (1 if is_recent else _DAYS_PER_OLD_CUT) or self._offsets[first] == self._offsets[last]:
            return
        middle = (first + last) // 2
        self._has_older(middle)
        self._search(first, middle)
        self._search(middle, last)
