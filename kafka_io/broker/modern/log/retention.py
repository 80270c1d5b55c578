"""Which segments of a log have to go: whole ones, from the front, by the times of their records and by size."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from kafka_io.broker.modern.log.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long, and how much of it, a log is kept; None is for ever, and all of it."""

    age_ms: int | None = None
    size_bytes: int | None = None

    def count_expired(self, segments: Sequence[Segment], now_ms: int) -> int:
        """How many segments, from the front, are to be deleted."""
        return max(self._count_old(segments, now_ms), self._count_surplus(segments))

    def _count_old(self, segments: Sequence[Segment], now_ms: int) -> int:
        if self.age_ms is None:
            return 0
        latest = now_ms - self.age_ms
        return sum(1 for _ in takewhile(lambda segment: _newest_ms(segment) < latest, segments))

    def _count_surplus(self, segments: Sequence[Segment]) -> int:
        """Segments without which the log still has `size_bytes`."""
        if self.size_bytes is None:
            return 0
        sizes = [segment.size for segment in segments]
        surplus = sum(sizes) - self.size_bytes
        return sum(1 for _ in takewhile(lambda deleted: deleted <= surplus, accumulate(sizes)))


def _newest_ms(segment: Segment) -> int:
    """Records of format 0 have no times: then that of the file counts."""
    return segment.max_time if segment.max_time >= 0 else segment.modified_ms
