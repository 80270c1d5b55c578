"""Thousands of simulated days pass all checks; worlds with a deliberate fault fail them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest

from pipelines.loading import commit, execute, load
from pipelines.loading import replacement as replacing
from pipelines.loading.commit import LoadChange
from pipelines.loading.plan import plan
from pipelines.loading.replacement import ReplaceChange
from pipelines.loading.table_log import TableLog, TableSnapshot
from pipelines.loading.work import CommittedRange
from tests.simulation.__main__ import run
from tests.simulation.store import SimStore
from tests.simulation.world import DAYS, Failed, World

pytestmark = pytest.mark.crash
_SEEDS = (1, 1001, 2001, 3001)
_DAYS = 500
_WORLDS_TO_FAIL = 300


# faults L01, L02, L03, L04, L05, L06, L09, L16, O03, O04, O05, S04, S05, S06, S07,
# B03, B04, B05, B06, B07, B08, B10, B14
@pytest.mark.parametrize("seed", _SEEDS)
def test_no_law_is_broken_on_any_simulated_day(seed: int) -> None:
    assert run(_DAYS, seed) == _DAYS // DAYS


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_the_same_seed_has_the_same_trace(seed: int) -> None:
    first, second = World(seed), World(seed)
    first.live()
    second.live()
    assert first.trace == second.trace
    assert len(first.trace) > DAYS


def test_worlds_differ() -> None:
    worlds = [World(seed) for seed in range(8)]
    for world in worlds:
        world.live(2)
    assert len({tuple(world.trace) for world in worlds}) == len(worlds)
    assert len({world.cluster.era for world in worlds}) > 1


def _looks_for_nothing(log: TableLog, *_: object) -> tuple[TableSnapshot, None]:
    return log.snapshot(), None


def _on_anything(self: ReplaceChange, now: TableSnapshot) -> ReplaceChange:
    assert now.entry is not None
    return replace(self, state=replace(self.state, covered=now.entry.covered))


def _uncounted(
    _log: TableLog, _at: TableSnapshot, left: Sequence[tuple[CommittedRange, CommittedRange]]
) -> tuple[CommittedRange, ...]:
    return tuple(piece for piece, _ in left)


BROKEN: Mapping[str, tuple[object, str, object]] = {
    "a store that does not compare": (SimStore, "compares", False),
    "a lost commit is not looked for": (commit, "_find_commit", _looks_for_nothing),
    "nothing is ever held": (commit, "_contains", lambda *_: False),
    "everything is held": (commit, "_contains", lambda *_: True),
    "ranges need not adjoin": (commit, "_check_adjoins", lambda *_: None),
    "what follows a failure is committed": (
        load,
        "committable",
        lambda facts, _: [slice_facts for slice_facts in facts if not slice_facts.failure],
    ),
    "an epoch is never set": (LoadChange, "_new_epochs", lambda *_: {}),
    "a new life within a fetch goes unnoticed": (execute, "check_incarnation", lambda *_: None),
    "holes are left without being asked": (
        load,
        "plan",
        lambda *args, **rest: plan(*args, **{**rest, "skip_expired": True}),
    ),
    "a cut or replay goes on top of anything": (ReplaceChange, "rebased", _on_anything),
    "what a cut leaves is not counted": (replacing, "with_counts", _uncounted),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_simulation_fails_if_something_is_broken(name: str) -> None:
    owner, attribute, value = BROKEN[name]
    with patch.object(owner, attribute, value), pytest.raises(Failed, match="seed"):
        run(_WORLDS_TO_FAIL * DAYS, 1)
