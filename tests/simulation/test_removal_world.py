"""In worlds with erasures, retirements and redecodes no row comes back, and each broken rule breaks a law."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import Mock, patch

import pytest

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.commit import erasure, offset_ranges, replacement
from pipelines.commit.commit import Change, columns_to_add
from pipelines.commit.erasure import EraseChange, ErasedRange
from pipelines.commit.retirement import FileRows, RetireChange, RetiredRows
from pipelines.fetch.left_out import LeftOut
from pipelines.identity.divergence import Divergence, DivergenceSearch
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.ledger import LedgerEntry
from pipelines.load import reconciled
from pipelines.maintenance import rewind
from pipelines.rewrites import exact_slices, replay
from pipelines.rewrites.redecode import RedecodeChange
from pipelines.table.exact_sets import ExactSets
from pipelines.table.table_store import TableSnapshot, TableStore
from tests.simulation import user_actions
from tests.simulation.__main__ import run
from tests.simulation.removal_law import RemovalLaw
from tests.simulation.sim_log import ERAS
from tests.simulation.world import DAYS, Failed, World
from tests.thorough import first

pytestmark = pytest.mark.crash
_SEEDS = (1, 1001, 2001, 3001)
_DAYS = 120
_WORLDS_TO_FAIL = 100


# faults P16, P17, P18, P22, P26, Y11
@pytest.mark.parametrize("seed", first(1, _SEEDS))
def test_no_law_is_broken_on_any_simulated_day(seed: int) -> None:
    assert run(_DAYS, seed, has_removals=True) == _DAYS // DAYS


def test_the_worlds_have_all_cases_of_the_law() -> None:
    missing, seeds = {"erase", "retire", "redecode", "cut", "returned"}, iter(range(1, 16))
    while missing:
        world = World(next(seeds), has_removals=True)
        world.simulate()
        missing -= {name for name, count in world.oracle.removals.counts.items() if count}


def test_only_rows_of_the_newest_topic_show_its_log() -> None:
    partition = BrokerPartition(None, 0)
    law = RemovalLaw(store=Mock(versions=[None]), removed={0: {("2", partition): {0: ExactCause.ERASED}}})
    erased = CommittedRange(offsets=OffsetRange(partition, 0, 1), gaps={ExactCause.ERASED: 1})
    rows = CommittedRange(offsets=OffsetRange(partition, 1, 4), rows=3)
    of_topic = {number: Mock(topic=Mock(incarnation=number)) for number in ("1", "2")}
    assert law.hides_log(of_topic["2"], partition, [erased])
    assert not law.hides_log(of_topic["2"], partition, [erased, rows])
    assert not law.hides_log(of_topic["1"], partition, [])


def _uncounted(
    self: RedecodeChange, entry: LedgerEntry, _table: TableStore, snapshot: TableSnapshot
) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
    return replace(entry, columns=columns_to_add(self.state, snapshot, self.columns)), ()


def _on_any_version(self: Change, newest: TableSnapshot) -> Change:
    assert newest.entry is not None
    return replace(self, state=newest.entry.state)


def _without_earlier(
    _table: TableStore, erased: ErasedRange
) -> tuple[CommittedRange, Mapping[ExactCause, ExactOffsets]]:
    committed, places, _ = erased
    return replace(committed, rows=committed.rows - places.count, paths=()), {ExactCause.ERASED: places}


def _without_sets(
    part: CommittedRange, whole: CommittedRange, rows: int, _exact: Mapping[ExactCause, int]
) -> CommittedRange:
    return WITH_COUNT(replace(part, exact={}), replace(whole, exact={}, gaps=whole.visible_gaps), rows, {})


def _with_all_files(self: RetireChange, newest: TableSnapshot) -> RetireChange:
    assert newest.entry is not None
    return replace(self, state=newest.entry.state)


def _taking_all(self: RetiredRows, rows: Sequence[FileRows]) -> bool:
    for number, part in (part for own in rows for part in self._within(own)):
        self._taken[number].append(part)
    return True


def _only_erased(sets: Mapping[ExactCause, ExactOffsets]) -> Mapping[ExactCause, ExactOffsets]:
    return {cause: own for cause, own in sets.items() if cause is ExactCause.ERASED}


def _whole_set(self: ExactSets, committed: CommittedRange) -> Mapping[ExactCause, ExactOffsets]:
    return {cause: self.of(stored) for cause, stored in committed.exact.items()}


def _counting_all(self: LeftOut, decoded: Any, covered: OffsetRange) -> tuple[Any, Mapping[str, int]]:
    return APPLY(self, decoded, covered)[0], decoded.gaps


def _by_rows_alone(
    self: DivergenceSearch, partition: BrokerPartition, bound: Bounds, *, other_at: int | None = None
) -> Divergence:
    return SEARCH(self, partition, bound, other_at=None if other_at is None else bound.latest)


WITH_COUNT, APPLY, SEARCH = offset_ranges._with_count, LeftOut.apply, DivergenceSearch.run
_Patch = tuple[object, str, object]
_FORGETS_SETS: _Patch = (replay, "lasting", lambda _: {})
BROKEN: Mapping[str, Sequence[_Patch]] = {
    "a replay does not know what was taken out": [(user_actions, "exact_of_slices", lambda *_: {}), _FORGETS_SETS],
    "a replay brings retired rows back": [(exact_slices, "lasting", _only_erased), (replay, "lasting", _only_erased)],
    "a replay does not see what was taken out, or came back, meanwhile": [_FORGETS_SETS],
    "a replay counts the offsets of a set as gaps of the log": [(LeftOut, "apply", _counting_all)],
    "a rewind does not look for erasures": [(rewind, "check_nothing_erased", lambda *_: None)],
    "an erasure lands on a version that nobody has searched": [(EraseChange, "rebased", _on_any_version)],
    "a redecode writes rows that were erased meanwhile": [
        (RedecodeChange, "rebased", _on_any_version),
        (RedecodeChange, "complete", _uncounted),
    ],
    "an erasure forgets the rows that were erased before": [(erasure, "_left", _without_earlier)],
    "a retirement takes out files that are no longer there": [(RetireChange, "rebased", _with_all_files)],
    "a retirement takes out rows that no range counts": [(RetiredRows, "take", _taking_all)],
    "what remains of a range forgets its sets": [(offset_ranges, "_with_count", _without_sets)],
    "a part of a range has the set of the whole": [(ExactSets, "within", _whole_set)],
    "a log has lost only what a row of the table shows": [(DivergenceSearch, "run", _by_rows_alone)],
    "a cut does not say that erased rows may come back": [(replacement, "_with_erased", lambda choice, _: choice)],
    "only the load that takes rows back says that erased ones may come back": [
        (reconciled, "erased_again", lambda *_: ())
    ],
}
_PLAIN: Mapping[str, bool] = {"is_typed": False, "is_skewed": False}
_RACES: Mapping[str, Any] = {
    **_PLAIN,
    "favours": {
        "others": 2,
        "replay": 8,
        "erase": 6,
        "retire": 4,
        "rewind": 4,
        "recreate": 0.2,
        "remove": 0.1,
        "expire": 0.3,
    },
}
_WORLDS_OF_FAULTS: Mapping[str, Mapping[str, Any]] = {
    "a replay does not know what was taken out": _RACES,
    "a replay brings retired rows back": _RACES,
    "a redecode writes rows that were erased meanwhile": {
        **_RACES,
        "favours": {**_RACES["favours"], "redecode": 10, "replay": 0.3},
    },
    "a replay does not see what was taken out, or came back, meanwhile": _RACES,
    "only the load that takes rows back says that erased ones may come back": {
        **_PLAIN,
        "eras": ERAS[1:],
        "favours": {"others": 3, "cut": 8, "erase": 4, "replay": 0.3, "remove": 0.1, "recreate": 0.1, "expire": 0.2},
    },
    "a log has lost only what a row of the table shows": {
        **_PLAIN,
        "eras": ERAS[1:],
        "favours": {"others": 3, "cut": 8, "retire": 8, "erase": 4, "remove": 0.1, "recreate": 0.1, "expire": 0.2},
    },
    "a replay counts the offsets of a set as gaps of the log": {
        **_RACES,
        "eras": ERAS[1:],
        "favours": {**_RACES["favours"], "compact_log": 4, "lose_records": 4},
    },
    "a retirement takes out files that are no longer there": {
        **_PLAIN,
        "favours": {"others": 3, "retire": 12, "erase": 0.3, "compact": 10, "remove": 0.1, "recreate": 0.2},
    },
}
"""Worlds in which the events of a fault are more frequent, because elsewhere they seldom meet; see `World`."""
_SEEDS_OF_FAULTS: Mapping[str, int] = {
    "a replay does not know what was taken out": 20,
    "a replay brings retired rows back": 24,
    "a replay does not see what was taken out, or came back, meanwhile": 39,
    "a replay counts the offsets of a set as gaps of the log": 5,
    "a rewind does not look for erasures": 13,
    "an erasure lands on a version that nobody has searched": 23,
    "a redecode writes rows that were erased meanwhile": 5,
    "an erasure forgets the rows that were erased before": 23,
    "a retirement takes out files that are no longer there": 37,
    "a retirement takes out rows that no range counts": 37,
    "what remains of a range forgets its sets": 13,
    "a part of a range has the set of the whole": 33,
    "a log has lost only what a row of the table shows": 27,
}
"""The seed of a world that detects the fault early; see test_world.py."""


@pytest.mark.parametrize("name", BROKEN)
def test_the_simulation_detects_a_broken_rule(name: str) -> None:
    with ExitStack() as broken:
        for owner, attribute, value in BROKEN[name]:
            broken.enter_context(patch.object(owner, attribute, value))
        with pytest.raises(Failed, match="seed"):
            _simulate(name, _WORLDS_TO_FAIL)


@pytest.mark.parametrize("name", _WORLDS_OF_FAULTS)
def test_a_world_with_more_of_the_events_of_a_fault_breaks_no_law_without_it(name: str) -> None:
    _simulate(name, 1)


def _simulate(name: str, worlds: int) -> None:
    first_seed = _SEEDS_OF_FAULTS.get(name, 1)
    run(worlds * DAYS, first_seed, has_removals=True, **_WORLDS_OF_FAULTS.get(name, {}))
