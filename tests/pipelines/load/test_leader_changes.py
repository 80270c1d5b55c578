"""A load that meets another leader than the one of its plan commits only rows of one history, under the right epoch."""

from collections.abc import Callable

import pytest

from resources.settings.choices import Choices
from tests.simulation.sim_log import ERAS, SimLog
from tests.simulation.test_found import SimTopic


def topic(loaded: int) -> tuple[SimTopic, SimLog]:
    """A topic whose first records are loaded, and that has 100."""
    sim = SimTopic(ERAS[3])
    log = sim.cluster.logs[sim.id]
    log.grow(range(loaded), lambda: 1)
    assert sim.load(Choices()).error is None
    log.grow(range(loaded, 100), lambda: 1)
    return sim, log


def payloads(sim: SimTopic) -> list[int]:
    return sorted(row.payload for row in sim.store.rows)


def epoch(sim: SimTopic) -> int:
    entry = sim.store.snapshot().entry
    assert entry
    return entry.state.epochs[sim.id]


def times(count: int, act: Callable[[], None]) -> Callable[[], None]:
    """Act at the first calls only."""
    calls = iter(range(count))
    return lambda: act() if next(calls, None) is not None else None


def test_records_of_a_leader_that_was_elected_after_the_plan_are_planned_again() -> None:  # faults A03, E09
    sim, log = topic(50)

    def elect() -> None:
        log.cut(60, 1)
        log.grow(range(200, 260), lambda: 1)

    load = sim.load(Choices(), planned=times(1, elect))
    assert (load.error, load.rows) == (None, 50)
    assert (payloads(sim), epoch(sim)) == ([*range(60), *range(200, 240)], 1)
    assert sim.load(Choices()).error is None
    assert (payloads(sim), epoch(sim)) == ([*range(60), *range(200, 260)], 1)


def test_rows_of_the_former_leader_are_not_committed_beside_those_of_the_next() -> None:  # fault A03
    """The first slice is read before the election, and the second one after it."""
    sim, log = topic(50)

    def elect() -> None:
        log.cut(50, 1)
        log.grow(range(200, 300), lambda: 1)

    sim.workers.on_read = times(1, elect)
    sim.load(Choices(), slice_records=25)
    error = sim.load(Choices()).error or ""
    assert error.startswith("LogTruncated: offsets [50, 75) are in the table")
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert payloads(sim) == [*range(50), *range(200, 300)]


def test_a_partition_whose_leader_changes_at_each_step_is_left_to_the_next_load() -> None:  # fault A03
    sim, log = topic(50)

    def elect() -> None:
        log.cut(60, 1)
        log.grow(range(200, 260), lambda: 1)

    load = sim.load(Choices(), planned=times(100, elect))
    assert (load.error or "").startswith("LeaderChanged: ")
    assert (load.failures[0].retriable, load.rows) == (True, 0)
    assert sim.load(Choices()).error is None
    assert epoch(sim) == log.epoch


@pytest.mark.parametrize("shows", [False, True])
def test_a_clean_election_during_a_load_changes_nothing(*, shows: bool) -> None:  # fault B01
    sim, log = topic(50)

    def elect() -> None:
        log.elect()
        log.grow(range(100, 100 + 10 * shows), lambda: 1)

    load = sim.load(Choices(), planned=times(1, elect))
    assert (load.error, load.rows, epoch(sim)) == (None, 50, 0)
    assert sim.load(Choices()).error is None
    assert payloads(sim) == [*range(100 + 10 * shows)]
