"""Snapshots and small files of an Iceberg table go away, whoever removes them, and the proof of its rows stays."""

from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from kafka_io.model import BrokerPartition
from pipelines.iceberg import snapshot_commit, stored_ledger
from pipelines.iceberg.housekeeping import snapshot_files
from pipelines.iceberg.open_version import IcebergVersion
from pipelines.iceberg.stored_ledger import LEDGER_FOLDER, StoredLedger
from pipelines.maintenance.clean import clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.verify.verify import verify
from resources.errors import EntryUnknown, LakeRefused, LogTorn, RewindRefused
from tests.small_table import SmallIcebergTable

A = BrokerPartition(0, 0)
AT_ONCE = timedelta(0)
MIB = 1024 * 1024


@pytest.fixture
def small(tmp_path: Path) -> SmallIcebergTable:
    """A table with three commits of five rows."""
    small = SmallIcebergTable(tmp_path / "lake")
    for start in (0, 50, 100):
        small.commit(small.write(start, start + 50))
    return small


def expired_by_others(small: SmallIcebergTable) -> None:
    """Let all snapshots expire that may: what the maintenance of any engine does."""
    table = small.handle()
    ids = [snapshot.snapshot_id for snapshot in table.metadata.snapshots[:-1]]
    table.maintenance.expire_snapshots().by_ids(ids).commit()


def metadata_of(small: SmallIcebergTable) -> list[str]:
    """The names of the files of metadata."""
    return sorted(path.name for path in Path(small.uri, "metadata").iterdir())


def test_the_ledger_outlives_the_snapshots_of_its_commits(small: SmallIcebergTable) -> None:
    before = verify(small.table)
    expired_by_others(small)
    after = verify(small.table)
    assert (after.problems, after.partitions) == ((), before.partitions)
    assert [version for version, _ in small.table.entries(small.table.snapshot())] == [3, 2, 1]
    small.commit(small.write(150, 200))
    assert (small.rows(), verify(small.table).problems) == (20, ())


def test_a_rewind_to_a_version_that_expired_is_refused(small: SmallIcebergTable) -> None:
    expired_by_others(small)
    with pytest.raises(RewindRefused, match="the snapshot of version 2 has expired"):
        plan_rewind(small.table, 2, run="back")
    assert small.rows() == 15


def test_housekeeping_deletes_no_file_of_rows_whose_snapshots_expired(small: SmallIcebergTable) -> None:
    expired_by_others(small)
    assert clean(small.table, keep=AT_ONCE, target_bytes=1, dry_run=False).collected == ()
    assert (small.rows(), verify(small.table).problems) == (15, ())


def test_housekeeping_lets_snapshots_expire_and_deletes_what_they_needed(small: SmallIcebergTable) -> None:
    result = clean(small.table, keep=AT_ONCE, target_bytes=MIB, dry_run=False)
    assert (result.merged, result.larger, small.rows()) == (3, 1, 15)
    second = clean(small.table, keep=AT_ONCE, target_bytes=MIB, dry_run=False)
    assert (len(second.collected), second.merged) == (3, 0)
    table = small.handle()
    assert [snapshot.sequence_number for snapshot in table.metadata.snapshots] == [3, 4], "the tag keeps the third one"
    needed = {Path(path).name for snapshot in table.metadata.snapshots for path in snapshot_files(table, snapshot)}
    assert {name for name in metadata_of(small) if name.endswith(".avro")} == needed
    assert verify(small.table).problems == ()
    small.commit(small.write(150, 200))
    assert (small.rows(), verify(small.table).problems) == (20, ())


def test_snapshots_of_the_days_before_stay_with_their_files(small: SmallIcebergTable) -> None:
    clean(small.table, keep=timedelta(days=7), target_bytes=MIB, dry_run=False)
    clean(small.table, keep=timedelta(days=7), target_bytes=MIB, dry_run=False)
    rewind(plan_rewind(small.table, 1, run="back"))
    assert (small.rows(), verify(small.table).problems) == (5, ())


def test_a_snapshot_that_a_tag_of_others_names_does_not_expire(small: SmallIcebergTable) -> None:
    second = small.handle().metadata.snapshots[1].snapshot_id
    small.handle().manage_snapshots().create_tag(second, "audit").commit()
    clean(small.table, keep=AT_ONCE, target_bytes=1, dry_run=False)
    assert small.handle().scan(snapshot_id=second).to_arrow().num_rows == 10


def test_a_table_with_delete_files_of_other_engines_is_only_rewound(small: SmallIcebergTable) -> None:
    with patch.object(IcebergVersion, "has_deletes", new=True):
        assert small.table.compact(None, MIB).merged == 0
        with pytest.raises(LakeRefused, match="which Penstock does not read: `penstock rewind`"):
            small.commit(small.write(150, 200))
        rewind(plan_rewind(small.table, 1, run="back"))
    assert small.rows() == 5


def test_a_merge_of_small_files_and_a_load_at_the_same_time_both_land(small: SmallIcebergTable) -> None:
    snapshot, facts = small.table.snapshot(), small.write(150, 200)
    assert small.table.compact(None, MIB).merged == 3
    assert small.commit(facts, snapshot=snapshot).version == 5
    assert (small.rows(), verify(small.table).problems) == (20, ())


def test_many_small_manifests_become_one(small: SmallIcebergTable) -> None:
    with patch.object(snapshot_commit, "_MANIFESTS_MERGED", 3):
        small.commit(small.write(150, 200))
    table = small.handle()
    newest = table.current_snapshot()
    assert newest is not None
    assert [manifest.existing_files_count for manifest in newest.manifests(table.io)] == [3, 0]
    assert (small.rows(), verify(small.table).problems) == (20, ())
    rewind(plan_rewind(small.table, 1, run="back"))
    assert (small.rows(), verify(small.table).problems) == (5, ())


def with_ledger_files(small: SmallIcebergTable) -> list[Path]:
    """Load on, each time with a file for the entries before; returns these files, oldest first."""
    with patch.object(stored_ledger, "_MAX_BYTES", 1), patch.object(stored_ledger, "_MAX_FILE_BYTES", 1):
        for start in (150, 200):
            small.commit(small.write(start, start + 50))
    return sorted(Path(small.uri, LEDGER_FOLDER).iterdir())


def test_a_long_ledger_continues_in_files(small: SmallIcebergTable) -> None:
    assert len(with_ledger_files(small)) == 2
    expired_by_others(small)
    clean(small.table, keep=AT_ONCE, target_bytes=MIB, dry_run=False)
    assert [version for version, _ in small.table.entries(small.table.snapshot())] == [5, 4, 3, 2, 1]
    assert (small.rows(), verify(small.table).problems) == (25, ())


def test_the_files_of_a_ledger_grow_until_they_are_large(small: SmallIcebergTable) -> None:
    with patch.object(stored_ledger, "_MAX_BYTES", 1):
        for start in range(150, 400, 50):
            small.commit(small.write(start, start + 50))
    ledger = StoredLedger.of(small.handle().properties)
    assert (len(ledger.records), len(ledger.files(small.uri, {}))) == (1, 1)
    assert len(list(Path(small.uri, LEDGER_FOLDER).iterdir())) == 5
    clean(small.table, keep=AT_ONCE, target_bytes=1, dry_run=False)
    assert [path.name for path in Path(small.uri, LEDGER_FOLDER).iterdir()] == [Path(ledger.earlier).name]
    assert ([version for version, _ in small.table.entries(small.table.snapshot())], verify(small.table).problems) == (
        [8, 7, 6, 5, 4, 3, 2, 1],
        (),
    )


@pytest.mark.parametrize("content", [None, b"{}"], ids=["missing", "damaged"])
def test_without_a_file_of_the_ledger_loads_continue_and_nothing_is_proven(
    small: SmallIcebergTable, content: bytes | None
) -> None:
    path = with_ledger_files(small)[0]
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogTorn, match="it has the table's ledger"):
        verify(small.table)
    small.commit(small.write(250, 300))
    assert small.rows() == 30


def test_a_damaged_ledger_is_no_empty_one(small: SmallIcebergTable) -> None:
    with small.handle().transaction() as change:
        change.set_properties({stored_ledger.LEDGER: "AAAA"})
    with pytest.raises(EntryUnknown, match=r"the property penstock\.ledger of the table is damaged"):
        small.commit(small.write(150, 200))
