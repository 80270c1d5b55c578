"""Why the last load of each topic failed: kept in the lake, so that `penstock status` and other processes can show it.

One small file per topic, `<lake>/<cluster>/_penstock/last_errors/<encoded topic>.json`. A failed load writes it, the
next successful load deletes it. The file only informs: no load reads it, and a load whose result cannot be kept ends
as it would have ended, with a warning. The topics' tables are not touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from kafka_io.errors import LocatedError
from pipelines.ledger.failure import SliceFailure
from pipelines.reports.topic_records import TopicRecords
from resources.printed import HIDDEN, printed_property
from resources.stores.lake import Lake, lake_errors

_FOLDER = "last_errors"
_MAX_FAILURES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LastError:
    """Why the last load of a topic failed.

    Args:
        run: the id of the run.
        time_ms: when it failed, in ms since 1970.
        failures: the first failures, without their stack traces.
        since_ms: when the first of the loads failed that failed one after the other, in ms since 1970.
    """

    run: str
    time_ms: int
    failures: tuple[SliceFailure, ...] = field(metadata=HIDDEN)
    count: int
    """The number of all errors."""
    since_ms: int = field(default=0, metadata=HIDDEN)

    @classmethod
    def of(cls, failures: Sequence[SliceFailure], *, run: str, time_ms: int) -> Self:
        """The last error of a load with these failures; the file stays small, however many there are."""
        first = tuple(replace(failure, trace="") for failure in failures[:_MAX_FAILURES])
        return cls(run=run, time_ms=time_ms, failures=first, count=len(failures), since_ms=time_ms)

    @printed_property
    def errors(self) -> tuple[SliceFailure, ...]:
        """The first errors."""
        return self.failures

    def __str__(self) -> str:
        and_more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{self.failures[0]}{and_more}" if self.failures else "the error is unknown"


UNKNOWN = LastError(run="", time_ms=0, failures=(), count=0)
"""The error of a file that a crash cut off: that the load failed is still known."""


class LastErrors:
    """The last errors of the topics of one cluster. A loader uses one object for all topics of its run."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self._records = TopicRecords(lake, cluster, _FOLDER, LastError)
        self._unavailable = False

    def __call__(self, topic: str, error: LastError | None) -> Sequence[str]:
        """Keep the last error of a topic, or remove it after a success (None); returns warnings.

        After a failure of the store, the run does not use it again: a load waits at most once.
        If another run writes a file after this run first asked for files, it stays until the topic's next load.
        """
        if self._unavailable:
            return ()
        try:
            with lake_errors(self._records.lake.root):
                if error is not None:
                    self._records.write(topic, self._continued(topic, error))
                elif topic in self._records.known:
                    self._records.delete(topic)
        except LocatedError as failure:
            self._unavailable = True
            return (f"`penstock status` may show an old result of this load: {failure}",)
        return ()

    def read(self) -> dict[str, LastError]:
        """The last error of each topic whose last load failed.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        with lake_errors(self._records.lake.root):
            return {topic: error or UNKNOWN for topic, error in self._records.read_all().items()}

    def _continued(self, topic: str, error: LastError) -> LastError:
        """The error, since the time at which the topic began to fail."""
        if topic not in self._records.known:
            return error
        earlier = self._records.read(topic) or UNKNOWN
        return replace(error, since_ms=earlier.since_ms or earlier.time_ms or error.since_ms)
