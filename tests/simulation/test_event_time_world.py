"""In worlds with event times no time is announced too early, and each broken rule of valid-through breaks the law."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import Mock, patch

import pytest

from pipelines.commit import replacement
from pipelines.ledger import slice_times
from pipelines.ledger.event_time import EventTime, LogAnswer, PartitionTime
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.load import committed
from pipelines.load.planned import Planned
from pipelines.load.run import Run
from pipelines.maintenance.rewind import restored_state
from pipelines.plan import valid_through
from pipelines.plan.valid_through import TimesOfLoad
from pipelines.table.table_store import TableSnapshot
from tests.simulation import user_actions
from tests.simulation.__main__ import run
from tests.simulation.world import DAYS, Failed, World
from tests.thorough import first

pytestmark = pytest.mark.crash
_SEEDS = (1, 1001, 2001, 3001)
_DAYS = 120
_WORLDS_TO_FAIL = 300


@pytest.mark.parametrize("seed", first(1, _SEEDS))
def test_no_law_is_broken_on_any_simulated_day(seed: int) -> None:  # fault U20
    assert run(_DAYS, seed, has_times=True) == _DAYS // DAYS


def test_the_worlds_have_all_cases_of_the_law() -> None:
    missing, seeds = {"announced", "late", "expired", "changed", "backfill"}, iter(range(1, 16))
    while missing:
        world = World(next(seeds), has_times=True)
        world.simulate()
        assert world.oracle.times is not None
        missing -= {name for name, count in world.oracle.times.counts.items() if count}


def test_a_commit_without_event_time_reads_nothing_for_it() -> None:
    """Each read of the store is a seam. One more would change all worlds, and with them those that detect faults."""
    log = Mock()
    table = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))
    assert valid_through.moved_back(table, log, TableSnapshot(version=1, entry=None), (), by="cut") is None
    assert log.mock_calls == []


def _proven(partitions: Mapping[Any, PartitionTime]) -> list[int]:
    return [time.proven_ms for time in partitions.values() if time.proven_ms is not None]


def _of_best(times: EventTime) -> int | None:
    return max(_proven(times.partitions), default=0) - times.lateness_ms or None


def _of_known(times: EventTime) -> int | None:
    known = _proven(times.partitions)
    return min(known) - times.lateness_ms if known else None


def _without_lateness(times: EventTime) -> int | None:
    known = _proven(times.partitions)
    return min(known) if known and len(known) == len(times.partitions) else None


def _idle_if_silent(self: TimesOfLoad, partition: Any, *args: Any) -> PartitionTime:
    after = PARTITION_AFTER(self, partition, *args)
    asked = [answers[-1].asked_ms for answers in self.answers.values()]
    return after if partition in self.answers or not asked else replace(after, proven_ms=max(asked))


def _is_at_stable_end(answer: LogAnswer, cursor: int) -> bool:
    return cursor >= answer.end


def _is_always_reached(_answer: LogAnswer, _cursor: int) -> bool:
    return True


def _asked_after_fetch(run: Run, planned: Planned, name: str) -> TimesOfLoad:
    reconciled = planned.reconciled
    later = replace(reconciled, discovered=replace(reconciled.discovered, began=run.now()))
    return TIMES(run, replace(planned, reconciled=later), name)


def _with_expired(*args: Any, **options: Any) -> TimesOfLoad:
    return TIMES_OF(*args, **{**options, "without": ()})


def _kept_by_rewind(newest: Any, target: Any) -> TableState:
    return replace(restored_state(newest, target), event_time=newest.event_time)


class _Kept:
    """Keeps the event time of a topic for the one that is created after it."""

    def __init__(self) -> None:
        self._last: EventTime | None = None

    def before(self, times: TimesOfLoad, state: TableState) -> tuple[EventTime, str]:
        self._last = state.event_time or self._last
        if (state.findings.replaced or state.findings.adopted) and self._last:
            return self._last.carried, ""
        return BEFORE(times, state)


KEPT = _Kept()


def _kept_by_recreation(times: TimesOfLoad, state: TableState) -> tuple[EventTime, str]:
    return KEPT.before(times, state)


PARTITION_AFTER = TimesOfLoad._partition_after
BEFORE = TimesOfLoad._before
TIMES = committed.times_of
TIMES_OF = TimesOfLoad.of
BROKEN: Mapping[str, tuple[object, str, object]] = {
    "the partition that proves the most decides": (EventTime, "proven_ms", property(_of_best)),
    "a partition without a proof is left out": (EventTime, "proven_ms", property(_of_known)),
    "the allowed lateness is not subtracted": (EventTime, "proven_ms", property(_without_lateness)),
    "a partition that does not answer counts as idle": (TimesOfLoad, "_partition_after", _idle_if_silent),
    "what a transaction holds back is not missed": (LogAnswer, "is_reached", _is_at_stable_end),
    "the cursor need not reach the end": (LogAnswer, "is_reached", _is_always_reached),
    "the time is noted after the fetch": (committed, "times_of", _asked_after_fetch),
    "a time in the future counts": (slice_times, "_largest", lambda _, largest, __, per_ms: largest // per_ms),
    "a partition that expired goes on": (TimesOfLoad, "of", _with_expired),
    "a rewind keeps the valid-through": (user_actions, "restored_state", _kept_by_rewind),
    "a replay and a cut keep the valid-through": (replacement, "moved_back", lambda state, *_, **__: state.event_time),
    "a recreated topic keeps the valid-through": (
        TimesOfLoad,
        "_before",
        _kept_by_recreation,
    ),
    "a backfill keeps the valid-through": (valid_through, "_has_older", lambda *_: False),
    "late rows are not counted": (valid_through, "late_rows", lambda _: {}),
}


_SEEDS_OF_FAULTS: Mapping[str, int] = {
    "the allowed lateness is not subtracted": 11,
    "the time is noted after the fetch": 33,
    "a partition that expired goes on": 8,
    "a replay and a cut keep the valid-through": 7,
    "a recreated topic keeps the valid-through": 16,
    "a backfill keeps the valid-through": 13,
}
"""The seed of a world that detects the fault early; see test_world.py."""


@pytest.mark.parametrize("name", BROKEN)
def test_the_simulation_detects_a_broken_rule(name: str) -> None:
    owner, attribute, value = BROKEN[name]
    with patch.object(owner, attribute, value), pytest.raises(Failed, match=r"announce|counted|skipped|changed|says"):
        run(_WORLDS_TO_FAIL * DAYS, _SEEDS_OF_FAULTS.get(name, 1), has_times=True)
