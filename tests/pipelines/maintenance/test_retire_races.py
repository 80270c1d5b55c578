"""A retirement beside loads, compactions, cuts and other retirements, and one that is killed at each of its steps."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit import commit as committing
from pipelines.commit.commit import LoadChange, commit
from pipelines.commit.replacement import CutChange
from pipelines.delta import compaction
from pipelines.identity.identity import table_state
from pipelines.maintenance import retire as retiring
from pipelines.maintenance.clean import clean
from resources import failpoints
from resources.errors import CommitRefused
from resources.settings.choices import Choices
from tests.failpoints import RETIRE_FAILPOINTS
from tests.pipelines.maintenance.old_rows import ONE, DatedTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it


@pytest.fixture
def loaded(tmp_path: Path) -> DatedTable:
    """Three days with two loads of ten records each."""
    dated = DatedTable(tmp_path / "lake")
    for number in range(6):
        dated.today = number // 2
        dated.commit(dated.records(10 * number, 10 * number + 10))
    return dated


@contextmanager
def happening(step: str, event: Callable[[], object]) -> Iterator[None]:
    """Let something happen while the retirement is suspended at a failpoint."""
    pending = [event]

    def failpoint(name: str) -> None:
        if name == step and pending:
            pending.pop()()

    with patch.object(retiring, "failpoint", failpoint), patch.object(committing, "failpoint", failpoint):
        yield


STEPS = ("retirement planned", "before retire entry")


@pytest.mark.parametrize("step", STEPS)
def test_a_load_at_the_same_time_is_kept(step: str, loaded: DatedTable) -> None:
    with happening(step, lambda: loaded.commit(loaded.records(60, 70))):
        assert loaded.retire(2).rows == 40
    assert (loaded.offsets(), loaded.problems()) == (list(range(40, 70)), ())


@pytest.mark.parametrize("step", STEPS)
def test_a_load_does_not_notice_a_retirement(step: str, loaded: DatedTable) -> None:
    facts, snapshot = loaded.records(60, 70), loaded.table.snapshot()
    loaded.retire(2)
    loaded.commit(facts, snapshot=snapshot)
    assert (loaded.offsets(), loaded.problems()) == (list(range(40, 70)), ())


def merge_files(loaded: DatedTable) -> None:
    assert clean(loaded.table, keep=timedelta(days=1), target_bytes=1_000_000, dry_run=False).merged == 6


@pytest.mark.parametrize("step", STEPS)
def test_files_that_are_merged_meanwhile_are_retired_by_the_next_housekeeping(step: str, loaded: DatedTable) -> None:
    with happening(step, lambda: merge_files(loaded)):
        assert loaded.retire(2).files == 0
    assert (len(loaded.offsets()), loaded.problems()) == (60, ())
    assert (loaded.retire(2).rows, loaded.problems()) == (40, ())


def cut(loaded: DatedTable) -> None:
    snapshot = loaded.table.snapshot()
    change = CutChange(state=table_state(snapshot, loaded.topic), ranges=(OffsetRange(ONE, 35, 60),), run="cut")
    commit(loaded.table, snapshot, change)


@pytest.mark.parametrize("step", STEPS)
def test_files_that_are_cut_meanwhile_are_left_alone(step: str, loaded: DatedTable) -> None:
    with happening(step, lambda: cut(loaded)):
        assert loaded.retire(2).rows == 30
    assert (loaded.offsets(), loaded.problems()) == (list(range(30, 35)), ())


@pytest.mark.parametrize("step", STEPS)
def test_two_retirements_at_once_retire_each_row_once(step: str, loaded: DatedTable) -> None:
    with happening(step, lambda: loaded.retire(1)):
        assert loaded.retire(2).rows == 20
    assert (loaded.offsets(), loaded.problems()) == (list(range(40, 60)), ())


def test_a_compaction_does_not_bring_retired_rows_back(loaded: DatedTable) -> None:
    """Delta's compaction sees that its files are gone."""
    pending = [lambda: loaded.retire(2)]

    def failpoint(name: str) -> None:
        if name == "compaction announced" and pending:
            pending.pop()()

    with patch.object(compaction, "failpoint", failpoint):
        assert clean(loaded.table, keep=timedelta(days=1), target_bytes=1_000_000, dry_run=False).busy
    assert (loaded.offsets(), loaded.problems()) == (list(range(40, 60)), ())


def test_a_retirement_of_a_table_that_another_incarnation_took_over_is_refused(loaded: DatedTable) -> None:
    def restart() -> None:
        topic = replace(loaded.topic, incarnation="8")
        state = table_state(loaded.table.snapshot(), topic, choices=Choices(on_recreated="restart"))
        commit(
            loaded.table, loaded.table.snapshot(), LoadChange(state=state, facts=(loaded.records(0, 5),), run="restart")
        )

    with happening("retirement planned", restart), pytest.raises(CommitRefused, match="another incarnation"):
        loaded.retire(2)
    # The rows of the former topic stay: no entry of the present one can name them.
    assert (loaded.retire(2).kept, loaded.problems()) == (4, ())


def test_a_retirement_passes_its_failpoints_in_order(loaded: DatedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no test would end it there."""
    monkeypatch.setenv(failpoints.KILL_AT, "raise:no failpoint")
    monkeypatch.setattr(failpoints, "_pass_counts", Counter())
    loaded.retire(2)
    assert set(RETIRE_FAILPOINTS) <= set(failpoints._pass_counts)


@pytest.mark.parametrize("name", RETIRE_FAILPOINTS)
def test_a_retirement_that_is_killed_anywhere_is_done_by_the_next_one(
    name: str, loaded: DatedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(failpoints.KILL_AT, f"raise:{name}")
    monkeypatch.setattr(failpoints, "_pass_counts", Counter())
    with pytest.raises(MemoryError, match=name):
        loaded.retire(2)
    monkeypatch.delenv(failpoints.KILL_AT)
    assert loaded.problems() == ()
    loaded.retire(2)
    assert (loaded.offsets(), loaded.problems()) == (list(range(40, 60)), ())
    assert loaded.covered() == {BrokerPartition(None, 0): (0, 60)}
