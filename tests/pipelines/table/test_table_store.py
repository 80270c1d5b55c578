"""What a snapshot of a table allows, and what the error of a lost answer says."""

from unittest.mock import Mock

import pytest

from kafka_io.errors import Where
from pipelines.layout.layout import RAW, TYPED
from pipelines.table.table_store import CommitOutcomeUnknown, TableSnapshot
from resources.errors import CommitRefused, TableNotProven

CLICKS = Where(cluster="main", topic="clicks")


def test_a_lost_answer_is_no_refusal_unless_the_store_says_so() -> None:
    lost, refused = CommitOutcomeUnknown("timeout"), CommitOutcomeUnknown("denied", refused=True)
    assert [(str(error), error.refused) for error in (lost, refused)] == [("timeout", False), ("denied", True)]


def test_each_commit_has_the_next_number() -> None:
    assert TableSnapshot(version=0, entry=None).next_sequence == 1
    assert TableSnapshot(version=9, entry=Mock(sequence=4)).next_sequence == 5


def test_rows_that_another_program_has_changed_are_not_written_on() -> None:  # fault A04
    TableSnapshot(version=3, entry=None).check_unchanged(CLICKS)
    with pytest.raises(TableNotProven, match=r"version 3 was made by DELETE .*topic=clicks"):
        TableSnapshot(version=3, entry=None, changed="version 3 was made by DELETE").check_unchanged(CLICKS)


@pytest.mark.parametrize(("before", "now", "kind"), [(RAW, TYPED, "typed"), (TYPED, RAW, "raw")])
def test_a_run_ends_if_its_table_has_become_one_of_another_kind(before: Mock, now: Mock, kind: str) -> None:
    planned, newest = (TableSnapshot(version=1, entry=None, layout=layout) for layout in (before, now))
    planned.check_layout(planned, CLICKS)
    with pytest.raises(CommitRefused, match=f"the table became {kind} meanwhile; run again"):
        planned.check_layout(newest, CLICKS)
