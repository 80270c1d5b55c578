"""After any history, the state table equals a full recomputation, and verify says so."""

from pathlib import Path
from random import Random

import pytest

from pipelines.state_tables.proof import prove_state
from pipelines.state_tables.update import update_state
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory
from tests.pipelines.increments.table_histories import EVENTS
from tests.thorough import first

pytestmark = pytest.mark.slow  # long histories


# faults A06, N51
@pytest.mark.parametrize("seed", first(1, range(12)))
@pytest.mark.parametrize("clock_error_us", [0, 90_000_000])
def test_a_state_table_equals_a_full_recomputation(seed: int, clock_error_us: int, tmp_path: Path) -> None:
    random = Random(seed)
    history = KeyedHistory(tmp_path / "lake", random, clock_error_us=clock_error_us)
    for event in ["load", *random.choices(EVENTS, k=18)]:
        history.happen(event)
        history.check()
        if random.random() < 0.4:
            update_state(history.table, BY_KEY)
            assert history.state() == history.expected(), history.events
    update_state(history.table, BY_KEY)
    assert history.state() == history.expected(), history.events
    proof = prove_state(history.table, BY_KEY)
    assert (proof.problems, proof.keys) == ((), len(history.expected()))
    done = update_state(history.table, BY_KEY)
    assert (done.since, done.changed, done.removed) == (done.version, 0, 0)


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_a_build_from_the_beginning_gives_the_same_as_many_updates(seed: int, tmp_path: Path) -> None:
    random = Random(100 + seed)
    history = KeyedHistory(tmp_path / "lake", random)
    for event in random.choices(EVENTS, k=12):
        history.happen(event)
        update_state(history.table, BY_KEY)
    updated = history.state()
    assert update_state(history.table, BY_KEY, rebuild=True).rebuilt
    assert history.state() == updated == history.expected()
