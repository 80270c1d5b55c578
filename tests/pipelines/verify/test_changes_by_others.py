"""A change of rows by another program is named, whatever it leaves of their number, and stops the next load."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import CommitProperties

from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify.verify import verify
from resources.errors import RewindRefused, TableNotProven

if TYPE_CHECKING:
    from tests.small_table import SmallTable

SPOIL = {"value": "arrow_cast('spoilt', 'Binary')"}


def filled(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))


def updated(small: "SmallTable") -> None:
    small.handle().update(
        updates=SPOIL,
        predicate='"offset" = 10',
        commit_properties=CommitProperties(custom_metadata={"userName": "alice"}),
    )


def overwritten(small: "SmallTable") -> None:
    rows = small.handle().to_pyarrow_table()
    from deltalake import write_deltalake  # noqa: PLC0415 - as another program does

    write_deltalake(small.handle(), rows, mode="overwrite")


def deleted(small: "SmallTable") -> None:
    small.handle().delete('"offset" >= 50')


def test_an_update_is_named_with_its_version_its_writer_and_its_ranges(small: "SmallTable") -> None:  # fault A04
    filled(small)
    updated(small)
    [problem] = verify(small.table).problems
    assert problem.startswith(
        "version 3 changed rows of the table, and Penstock did not write it (UPDATE by delta-rs:py-"
    )
    assert " for alice): `penstock rewind clicks --version 2` takes this back, or `penstock replay clicks " in problem
    assert problem.endswith("; it wrote rows of partition 0-0 [0, 50)")


@pytest.mark.parametrize("change", [updated, overwritten, deleted], ids=lambda change: change.__name__)
def test_no_load_lands_on_a_change_of_rows_and_a_rewind_repairs_it(
    change: Any, small: "SmallTable"
) -> None:  # fault A04
    filled(small)
    late = small.write(80, 90)
    planned = small.table.snapshot()
    change(small)
    assert not verify(small.table).proven
    for snapshot in (planned, None):
        with pytest.raises(TableNotProven, match="version 3 changed rows of the table"):
            small.commit(late, snapshot=snapshot)
    assert small.table.snapshot().version == 3
    with pytest.raises(TableNotProven, match="penstock rewind clicks --version 2"):
        small.table.snapshot().check_unchanged(small.table.where)
    rewind(plan_rewind(small.table, 2, run="repair"))
    assert verify(small.table).problems == ()
    small.commit(late)
    assert verify(small.table).problems == ()


def test_a_change_below_newer_entries_is_named_too(small: "SmallTable") -> None:  # fault A04
    filled(small)
    updated(small)
    loading = small.loading(small.write(80, 90))
    with pytest.MonkeyPatch.context() as earlier_version:
        earlier_version.setattr(type(loading), "repairs", True)
        small.commit(*loading.facts)
    [problem] = verify(small.table).problems
    assert problem.startswith("version 3 changed rows")
    assert small.table.snapshot().changed == ""


def test_a_lost_row_names_the_commit_that_deleted_it(small: "SmallTable") -> None:  # fault A04
    filled(small)
    deleted(small)
    problems = verify(small.table).problems
    assert [problem.partition(" (")[0] for problem in problems] == [
        "version 3 changed rows of the table, and Penstock did not write it",
        "partition 0-0 [50, 80) holds 0 rows, but its commit counted 3",
    ]


def test_a_version_with_a_change_of_rows_is_no_target_of_a_rewind(small: "SmallTable") -> None:  # fault A04
    filled(small)
    updated(small)
    small.handle().alter.set_table_properties({"note": "x"}, raise_if_not_exists=False)
    with pytest.raises(RewindRefused, match="version 3 changed rows of the table"):
        plan_rewind(small.table, 3, run="repair")


def test_a_compaction_and_properties_of_others_change_nothing(small: "SmallTable") -> None:  # fault A04
    filled(small)
    small.handle().optimize.compact()
    small.handle().alter.set_table_properties({"note": "x"}, raise_if_not_exists=False)
    assert verify(small.table).problems == ()
    small.commit(small.write(80, 90))
    assert verify(small.table).problems == ()


def test_a_change_without_statistics_may_have_written_every_range(small: "SmallTable") -> None:  # fault A04
    filled(small)
    updated(small)
    path = Path(small.uri) / f"_delta_log/{3:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    path.write_text("\n".join(map(json.dumps, actions)))
    [problem] = verify(small.table).problems
    assert problem.endswith("; it wrote rows of partition 0-0 [0, 80)")
