"""Measures the last messages that a load reads again: `python -m tests.bench.last_messages <job>` prints their cost.

A load reads the last message before each cursor again if nothing stronger than this message identifies the log. The
topic of the bench has an id, which this load ignores.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from kafka_io.records import decoder
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.identity import truncation
from pipelines.identity.identity import table_state
from pipelines.ledger.ledger import TableState
from pipelines.load import discovered, fetched
from resources.settings.settings import Caps
from tests.bench.cases import PARTITIONS, Job
from tests.bench.comparison import Timer
from tests.bench.peers import ours
from tests.bench.printed import PrintedResult

_COMPARISONS: Sequence[tuple[Any, str]] = ((truncation, "compare_last_messages"), (fetched, "check_same_logs"))
"""The functions that compare: before the load plans, and after it has fetched. Neither calls the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastMessageCost(PrintedResult):
    """The CPU seconds of a load, and the part of them in which it reads and compares the last messages of the table."""

    load_cpu_s: float
    compare_cpu_s: float

    @property
    def share(self) -> float:
        """The part as a fraction of the load."""
        return self.compare_cpu_s / self.load_cpu_s


def measure(job: Job) -> LastMessageCost:
    """Begin a table with one record per partition, and measure the load of all others. Both have run once before.

    Raises:
        NotLoaded: a load failed.
    """
    decoder.warm()
    _load_in_two_steps(job.warming())
    return _load_in_two_steps(job)


def _load_in_two_steps(job: Job) -> LastMessageCost:
    using = ours.settings(job)
    first = using.model_copy(update={"caps": Caps(records_per_run=PARTITIONS)})
    whole, comparing = Timer(), Timer()
    with _ignoring_topic_ids():
        ours.load(job.topic, first, ours.no_session, fetch=fetch_here)
        with _timed(comparing):
            whole.around(ours.load)(job.topic, using, ours.no_session, fetch=fetch_here)
    return LastMessageCost(load_cpu_s=whole.total_s, compare_cpu_s=comparing.total_s)


@contextmanager
def _ignoring_topic_ids() -> Iterator[None]:
    def without_topic_id(*args: Any, **options: Any) -> TableState:
        state = table_state(*args, **options)
        findings = replace(state.findings, same_topic_id=False)
        return replace(state, ids=replace(state.ids, topic_id=""), findings=findings)

    with patch.object(discovered, "table_state", without_topic_id):
        yield


@contextmanager
def _timed(timer: Timer) -> Iterator[None]:
    """Time both comparisons of a load."""
    with ExitStack() as patches:
        for module, name in _COMPARISONS:
            patches.enter_context(patch.object(module, name, timer.around(getattr(module, name))))
        yield


def main() -> None:
    """Measure, and print the cost."""
    measure(Job.of(json.loads(sys.argv[1]))).write()


if __name__ == "__main__":
    main()
