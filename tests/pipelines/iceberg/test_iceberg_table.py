"""An Iceberg table has each row once, whoever commits at the same time, and whatever answers of a catalog are lost."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from kafka_io.model import BrokerPartition
from pipelines.commit.commit import commit
from pipelines.iceberg.snapshot_commit import TAG
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify.verify import verify
from resources.errors import CommitUnknown, CursorMismatch, TableNotProven
from tests.pipelines.iceberg.lossy_catalog import LOST, LossyCatalog
from tests.small_table import SmallIcebergTable

A = BrokerPartition(0, 0)


@pytest.fixture
def small(tmp_path: Path) -> SmallIcebergTable:
    return SmallIcebergTable(tmp_path / "lake")


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_a_commit_whose_answer_is_lost_has_landed_once(small: SmallIcebergTable, error: Exception) -> None:
    catalog = LossyCatalog(small.catalog, lambda: "after", [error])
    table = replace(small.table, catalog=catalog)  # type: ignore[arg-type]
    assert small.commit(small.write(0, 50), snapshot=table.snapshot(), table=table).version == 1
    assert (small.rows(), catalog.lost, verify(small.table).problems) == (5, 1, ())


def test_a_commit_of_which_nothing_is_known_deletes_nothing(small: SmallIcebergTable) -> None:
    table = replace(small.table, catalog=LossyCatalog(small.catalog, lambda: "after", [ConnectionResetError("closed")]))  # type: ignore[arg-type]
    snapshot, facts = table.snapshot(), small.write(0, 50)
    entry = small.loading(facts, snapshot=snapshot)
    with patch.object(LossyCatalog, "load_table", side_effect=OSError("away")), pytest.raises(CommitUnknown):
        commit(table, snapshot, entry, sleep=lambda _: None)
    assert (small.rows(), verify(small.table).problems) == (5, ())


def test_rows_that_another_program_appends_are_named_and_stop_the_next_load(small: SmallIcebergTable) -> None:
    small.commit(small.write(0, 50))
    table = small.handle()
    table.append(table.scan().to_arrow())
    [problem, *_] = verify(small.table).problems
    assert problem.startswith("version 2 changed rows of the table, and Penstock did not write it (append by")
    with pytest.raises(TableNotProven):
        small.commit(small.write(50, 80))
    rewind(plan_rewind(small.table, 1, run="back"))
    assert small.commit(small.write(50, 80)).version == 4
    assert (small.rows(), verify(small.table).problems) == (8, ())


def test_a_table_that_was_rolled_back_is_refused_until_its_newest_snapshot_is_back(small: SmallIcebergTable) -> None:
    for start in (0, 50):
        small.commit(small.write(start, start + 50))
    first, second = (snapshot.snapshot_id for snapshot in small.handle().metadata.snapshots)
    small.handle().manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(CursorMismatch, match="somebody rolled it back or replaced it"):
        small.commit(small.write(100, 150))
    assert any("does not follow Penstock's newest snapshot" in problem for problem in verify(small.table).problems)
    small.handle().manage_snapshots().create_tag(second, "again").commit()
    small.handle().manage_snapshots().set_current_snapshot(ref_name=TAG).commit()
    small.commit(small.write(100, 150))
    assert (small.rows(), verify(small.table).problems) == (15, ())


def test_a_table_without_its_tag_is_refused(small: SmallIcebergTable) -> None:
    small.commit(small.write(0, 50))
    small.handle().manage_snapshots().remove_tag(TAG).commit()
    with pytest.raises(CursorMismatch, match=r"the tag penstock of the table main\.clicks is gone"):
        small.commit(small.write(50, 80))


@pytest.mark.parametrize("others", ["offset < 1000", "topic = 'clicks'", "date is not null"])
def test_a_filter_on_values_finds_the_rows_that_it_describes(small: SmallIcebergTable, others: str) -> None:
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    rows = small.handle().scan(row_filter=f"offset >= 30 and {others}").to_arrow()
    assert sorted(rows.column("offset").to_pylist()) == [30, 40, 50, 60, 70]
    assert rows.schema.field("date").type == pa.date32()


def test_the_newest_snapshot_of_penstock_survives_an_expiry_of_snapshots(small: SmallIcebergTable) -> None:
    for start in (0, 50):
        small.commit(small.write(start, start + 50))
    tagged = small.handle().metadata.refs[TAG].snapshot_id
    small.handle().maintenance.expire_snapshots().by_id(small.handle().metadata.snapshots[0].snapshot_id).commit()
    assert [snapshot.snapshot_id for snapshot in small.handle().metadata.snapshots] == [tagged]
    assert small.covered() == {A: (0, 100)}
    small.commit(small.write(100, 150))
    assert small.rows() == 15


def test_an_empty_table_has_no_files_and_all_columns_of_its_files(small: SmallIcebergTable) -> None:
    files = small.table.snapshot().opened.files()
    assert (files.num_rows, files.schema.field("partition.date").type) == (0, pa.date32())
