"""The scheduler reaches the seams of the product. Otherwise the simulation would pass without killing any run."""

import random
import sys

import pytest

from pipelines.commit import commit
from resources.failpoints import failpoint
from tests.simulation.scheduler import Odds, Scheduler, hooked
from tests.simulation.world import World

pytestmark = pytest.mark.crash


def test_every_failpoint_and_every_pause_of_the_product_is_the_schedulers() -> None:
    modules = [module for name, module in sys.modules.items() if name.startswith("pipelines.")]
    hooks = [module for module in modules if getattr(module, "failpoint", None) is failpoint]
    hooks = [module for module in hooks if module.__name__ != failpoint.__module__]
    assert len(hooks) >= 5
    scheduler = Scheduler(rng=random.Random(0), odds=Odds.calm())
    with hooked(scheduler):
        assert [module.__name__ for module in hooks if module.failpoint != scheduler.step] == []
        assert commit.commit.__kwdefaults__ == {"sleep": scheduler.pause}
    assert all(module.failpoint is failpoint for module in hooks)


def test_runs_are_killed_at_failpoints_of_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world kills runs at steps that only the product passes, not only at the seams of the fakes."""
    passed: set[str] = set()
    step = Scheduler.step

    def remember(self: Scheduler, name: str) -> None:
        passed.add(name)
        step(self, name)

    monkeypatch.setattr(Scheduler, "step", remember)
    World(1).simulate(3)
    assert {"discovered", "planned", "before load entry", "after load entry", "loaded"} <= passed
