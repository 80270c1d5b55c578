"""In worlds whose loads have many steps, begun ahead in Spark, no law is broken; each broken rule breaks one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from kafka_io.model import Bounds, BrokerPartition
from pipelines.ledger.ledger import Coverage
from pipelines.plan.plan import PlannedStep
from tests.simulation.__main__ import run
from tests.simulation.sim_log import ERAS
from tests.simulation.world import DAYS, Failed, World
from tests.thorough import first

pytestmark = pytest.mark.crash
_SEEDS = (1, 1001, 2001)
_DAYS = 120
_WORLDS_TO_FAIL = 100
_ELECTIONS: Mapping[str, Any] = {
    "is_typed": False,
    "is_skewed": False,
    "eras": ERAS[2:],
    "start": "earliest",
    "favours": {
        "others": 3,
        "load": 0.2,
        "replay": 0.2,
        "rewind": 0.2,
        "clean": 0.2,
        "send": 2,
        "cut": 8,
        "lose_leader": 0.2,
        "remove": 0.1,
        "recreate": 0.1,
        "expire": 0.2,
    },
}
"""Worlds in which leaders change more often while slices are fetched."""
FITS = PlannedStep.fits


@pytest.mark.parametrize("seed", first(1, _SEEDS))
def test_no_law_is_broken_on_any_simulated_day(seed: int) -> None:  # fault O09
    assert run(_DAYS, seed, has_times=None, has_steps=True) == _DAYS // DAYS


def test_steps_are_begun_ahead() -> None:
    world = World(1, has_steps=True)
    world.simulate()
    assert world.spark is not None
    assert world.spark.begun_ahead > 10


def _in_any_epoch(self: PlannedStep, covered: Coverage, bounds: Mapping[BrokerPartition, Bounds]) -> bool:
    epochs = {partition: bounds[partition].epoch for partition in self.epochs if partition in bounds}
    return FITS(replace(self, epochs={**self.epochs, **epochs}), covered, bounds)


_BROKEN: Mapping[str, tuple[object, int, Mapping[str, Any]]] = {
    "a planned step is used whatever happened since": (lambda *_: True, 1, {}),
    "slices that were fetched under another leader are used": (_in_any_epoch, 1060, _ELECTIONS),
}
"""The broken rules, each with the seed and the kind of a world that detects it."""


@pytest.mark.parametrize("name", _BROKEN)
def test_the_simulation_detects_a_deliberate_fault(name: str) -> None:
    fits, first_seed, kind = _BROKEN[name]
    with patch.object(PlannedStep, "fits", fits), pytest.raises(Failed, match="seed"):
        _simulate(kind, range(first_seed, first_seed + _WORLDS_TO_FAIL))


def _simulate(kind: Mapping[str, Any], seeds: range) -> None:
    for seed in seeds:
        World(seed, has_steps=True, **kind).simulate()


def test_no_law_is_broken_by_elections_while_slices_are_fetched() -> None:
    _simulate(_ELECTIONS, range(1, 2))
