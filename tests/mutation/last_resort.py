"""Simulated days, for mutants that no other test notices: `make test` does not collect this file."""

import pytest

from tests.simulation.world import World

_DAYS = 10


@pytest.mark.parametrize("seed", range(1, 13))
def test_no_law_is_broken_on_some_simulated_days(seed: int) -> None:
    World(seed).simulate(_DAYS)
