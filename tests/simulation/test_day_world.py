"""Worlds with folders of event days break no law, and those with a deliberate fault break one."""

from collections.abc import Iterator, Mapping, Sequence
from unittest.mock import patch

import pyarrow as pa
import pytest

from pipelines.layout import event_days
from pipelines.layout.event_days import EventDays
from pipelines.ledger.slice_facts import DataFile
from tests.simulation import workers
from tests.simulation.__main__ import run
from tests.simulation.world import DAYS, Failed

pytestmark = pytest.mark.crash
_WORLDS_TO_FAIL = 30
_SPLIT = EventDays.split


@pytest.mark.parametrize(("is_typed", "days"), [(False, 40), (True, 20)], ids=["raw", "typed"])
def test_no_law_is_broken_in_worlds_with_folders_of_days(is_typed: bool, days: int) -> None:
    assert run(days, 1, is_typed=is_typed, is_by_day=True) == days // DAYS


def _first_file_only(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    return tuple(files[:1])


def _whole_batch(days: EventDays, rows: pa.RecordBatch) -> Iterator[tuple[object, pa.RecordBatch]]:
    for day, _part in _SPLIT(days, rows):
        yield day, rows


def _in_one_folder(days: EventDays, rows: pa.RecordBatch) -> Iterator[tuple[object, pa.RecordBatch]]:
    [(first, _), *_] = _SPLIT(days, rows)
    yield first, rows


BROKEN: Mapping[str, tuple[object, str, object]] = {
    "only the first file of a slice is committed": (workers, "reported", _first_file_only),
    "a row is in the files of all days": (EventDays, "split", _whole_batch),
    "a row is in the folder of another day": (EventDays, "split", _in_one_folder),
    "every day of a slice is open": (event_days, "MAX_OPEN_DAYS", 1000),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_simulation_of_days_detects_a_deliberate_fault(name: str) -> None:
    owner, attribute, value = BROKEN[name]
    with patch.object(owner, attribute, value), pytest.raises(Failed, match="seed"):
        run(_WORLDS_TO_FAIL * DAYS, 1, is_by_day=True)
