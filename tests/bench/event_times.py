"""Measures what valid-through adds to a load: `python -m tests.bench.event_times <job>` prints its cost.

The settings ask for the event time of the topic. Timers are around what the load does for it: looking at the times of
each batch, and making and storing the record of the commit. Times of other loads decide what is late, so the topic is
loaded in two steps.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from kafka_io.records import decoder
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.ledger.event_time import EventTime
from pipelines.ledger.slice_times import TimesOfRows
from pipelines.plan.valid_through import TimesOfLoad
from resources.settings.settings import Caps, Settings
from resources.settings.topic_formats import TopicFormat
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_sections import TopicSections
from tests.bench.cases import PARTITIONS, Job
from tests.bench.comparison import Timer
from tests.bench.peers import ours
from tests.bench.printed import PrintedResult

_STEPS: Sequence[tuple[type, str]] = ((TimesOfRows, "add"), (TimesOfLoad, "after"), (EventTime, "as_dict"))
"""The methods that a load runs for event time. None calls another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeCost(PrintedResult):
    """The CPU seconds of a load, and the part of them that it needs for event time."""

    load_cpu_s: float
    times_cpu_s: float

    @property
    def share(self) -> float:
        """The part as a fraction of the load."""
        return self.times_cpu_s / self.load_cpu_s


def measure(job: Job) -> EventTimeCost:
    """Begin a table with one record per partition, and measure the load of all others. Both have run once before.

    Raises:
        NotLoaded: a load failed.
    """
    decoder.warm()
    _load_in_two_steps(job.warming())
    return _load_in_two_steps(job)


def _load_in_two_steps(job: Job) -> EventTimeCost:
    using = _with_event_time(ours.settings(job), job.topic)
    first = using.model_copy(update={"caps": Caps(records_per_run=PARTITIONS)})
    whole, times = Timer(), Timer()
    ours.load(job.topic, first, ours.no_session, fetch=fetch_here)
    with _timed(times):
        whole.around(ours.load)(job.topic, using, ours.no_session, fetch=fetch_here)
    return EventTimeCost(load_cpu_s=whole.total_s, times_cpu_s=times.total_s)


def _with_event_time(using: Settings, topic: str) -> Settings:
    topics = TopicSections(sections={topic: TopicOptions(format=TopicFormat(event_time="timestamp"))})
    return using.model_copy(update={"topics": topics})


@contextmanager
def _timed(timer: Timer) -> Iterator[None]:
    with ExitStack() as patches:
        for owner, name in _STEPS:
            step: Any = getattr(owner, name)
            patches.enter_context(patch.object(owner, name, timer.around(step)))
        yield


def main() -> None:
    """Measure, and print the cost."""
    measure(Job.of(json.loads(sys.argv[1]))).write()


if __name__ == "__main__":
    main()
