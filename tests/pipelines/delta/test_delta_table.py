"""DeltaLakeTable refuses damaged and foreign tables, with messages that say what to do."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from deltalake import CommitProperties, PostCommitHookProperties, Transaction

from kafka_io.model import BrokerPartition
from pipelines.delta import delta_table as table_module
from pipelines.delta import snapshot_checks
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.ledger import SEQUENCE
from pipelines.maintenance.clean import clean
from pipelines.verify.verify import proof_of, verify
from resources.errors import CommitUnknown, CursorMismatch, LakeUnavailable, LogTorn, TableForeign, TableReplaced
from resources.stores import durable

if TYPE_CHECKING:
    from tests.small_table import SmallTable

A = BrokerPartition(0, 0)


@pytest.fixture
def twice(small: "SmallTable") -> "SmallTable":
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    return small


def entry(small: "SmallTable", version: int) -> Path:
    return Path(small.uri) / "_delta_log" / f"{version:020d}.json"


@pytest.mark.parametrize("size", [1, 100, 400])
def test_a_torn_last_entry_is_named_with_what_to_do(
    size: int, twice: "SmallTable", tmp_path: Path
) -> None:  # faults L10, L13
    (Path(twice.uri) / "_delta_log" / "notes.json").write_text("somebody else's")
    torn = entry(twice, 2)
    torn.write_bytes(torn.read_bytes()[:size])
    with pytest.raises(LogTorn, match=r"_delta_log/0{19}2.json of the table .* move it away and load again"):
        twice.table.snapshot()
    torn.rename(tmp_path / "torn.json")
    assert twice.covered() == {A: (0, 50)}
    twice.commit(twice.write(50, 80))
    assert verify(twice.table).problems == ()


@pytest.mark.parametrize("size", [0, 5, 400])
def test_a_torn_checkpoint_is_named_with_what_to_do(
    size: int, twice: "SmallTable", tmp_path: Path
) -> None:  # faults L10, L13
    twice.handle().create_checkpoint()
    [torn] = (Path(twice.uri) / "_delta_log").glob("*.checkpoint.parquet")
    torn.write_bytes(torn.read_bytes()[:size])
    with pytest.raises(LogTorn, match=r"_delta_log/0{19}2.checkpoint.parquet of .* and also .*/_last_checkpoint"):
        twice.table.snapshot()
    torn.rename(tmp_path / "torn.parquet")
    (torn.parent / "_last_checkpoint").rename(tmp_path / "last")
    assert twice.covered() == {A: (0, 80)}
    twice.commit(twice.write(80, 90))
    assert verify(twice.table).problems == ()


def test_a_pointer_to_a_checkpoint_that_is_gone_is_named_with_what_to_do(twice: "SmallTable") -> None:  # fault E06
    twice.handle().create_checkpoint()
    log = Path(twice.uri) / "_delta_log"
    [checkpoint] = log.glob("*.checkpoint.parquet")
    checkpoint.unlink()
    with pytest.raises(LogTorn, match=r"names the checkpoint of version 2, .* move _delta_log/_last_checkpoint away"):
        twice.table.snapshot()
    assert "move _delta_log/_last_checkpoint away" in proof_of(twice.table, verify).problems[0]
    (log / "_last_checkpoint").unlink()
    assert twice.covered() == {A: (0, 80)}
    twice.commit(twice.write(80, 90))
    assert verify(twice.table).problems == ()


def test_an_empty_last_entry_is_ignored_and_written_again(
    twice: "SmallTable",
) -> None:  # fault L10: the name of the entry is on disk, its bytes are not
    entry(twice, 2).write_bytes(b"")
    assert twice.covered() == {A: (0, 50)}
    twice.commit(twice.write(50, 80))
    assert (twice.rows(), verify(twice.table).problems) == (8, ())


def test_a_missing_entry_is_refused_in_one_line(twice: "SmallTable") -> None:  # fault L13
    entry(twice, 1).unlink()
    with pytest.raises(LakeUnavailable, match=r"json of the table .* is missing: .* Copy it back") as refused:
        twice.table.snapshot()
    assert "\n" not in str(refused.value)


def test_an_entry_that_somebody_cleaned_up_is_named_with_what_to_do(twice: "SmallTable") -> None:  # fault L13
    twice.handle().create_checkpoint()
    entry(twice, 1).unlink()
    assert twice.covered() == {A: (0, 80)}
    with pytest.raises(LogTorn, match=r"_delta_log/0{19}1.json of the table .* is missing.*Copy it back") as refused:
        list(twice.table.entries(twice.table.snapshot()))
    assert not refused.value.retriable


def test_a_sequence_number_that_another_writer_moved_is_refused(twice: "SmallTable") -> None:  # fault G03
    moved = CommitProperties(app_transactions=[Transaction(SEQUENCE, 9)])
    twice.handle().create_write_transaction([], mode="append", schema=twice.handle().schema(), commit_properties=moved)
    with pytest.raises(CursorMismatch, match="number 2, but the table's cursors belong to number 9"):
        twice.table.existing()


def test_a_table_whose_cursors_would_expire_is_refused(twice: "SmallTable") -> None:  # faults L15, G04
    expiry = {"delta.setTransactionRetentionDuration": "interval 7 days"}
    twice.handle().alter.set_table_properties(expiry)
    with pytest.raises(TableForeign, match="setTransactionRetentionDuration = interval 7 days"):
        twice.table.existing()


def test_a_new_table_never_cleans_up_its_log(small: "SmallTable") -> None:  # fault G05
    assert small.handle().metadata().configuration["delta.enableExpiredLogCleanup"] == "false"


def test_a_disk_that_cannot_keep_a_commit_leaves_it_unknown(small: "SmallTable") -> None:  # fault L10
    snapshot, facts = small.table.snapshot(), small.write(0, 50)
    with (
        patch.object(durable, "sync", side_effect=OSError(5, "Input/output error")),
        pytest.raises(CommitUnknown, match=r"landed, but could not be forced to disk: input/output error"),
    ):
        small.commit(facts, snapshot=snapshot)
    assert small.covered() == {A: (0, 50)}


def synced(table: DeltaLakeTable, change: Callable[[], object]) -> list[str]:
    """The names of the files in the Delta log that the change forces to disk."""
    with patch.object(durable, "sync") as sync:
        change()
    log = Path(table.uri) / "_delta_log"
    return sorted(path.name for call in sync.call_args_list for path in call.args if path.parent == log)


def test_a_new_table_survives_a_loss_of_power(small: "SmallTable") -> None:  # fault L10
    table = DeltaLakeTable.of(small.table.lake, "main", "views")
    assert synced(table, table.snapshot) == [f"{0:020d}.json"]


def test_the_new_entries_and_checkpoints_of_the_log_are_forced_to_disk(twice: "SmallTable") -> None:  # fault L10
    checkpoint = f"{2:020d}.checkpoint.parquet"
    for name in (checkpoint, "_last_checkpoint", f"{2:020d}.json#1", "notes.json", f"{2:020d}.txt"):
        (Path(twice.uri) / "_delta_log" / name).touch()
    forced = synced(twice.table, lambda: twice.table.sync(after=1))
    assert forced == sorted([checkpoint, "_last_checkpoint", f"{2:020d}.json"])


def put_aside(small: "SmallTable") -> Path:
    """Move the Delta log away, as somebody does who removes the table."""
    log = Path(small.uri) / "_delta_log"
    return log.rename(log.with_name("removed"))


def test_a_commit_does_not_create_a_removed_table_again(twice: "SmallTable") -> None:  # fault P07
    snapshot, facts = twice.table.snapshot(), twice.write(80, 90)
    put_aside(twice)
    with pytest.raises(TableReplaced, match="was removed while this run used it; run again"):
        twice.commit(facts, snapshot=snapshot)
    assert twice.table.existing() is None


def test_a_commit_is_refused_if_another_table_is_there(twice: "SmallTable") -> None:  # fault P07
    snapshot, facts = twice.table.snapshot(), twice.write(80, 90)
    put_aside(twice)
    for start, stop in ((0, 50), (50, 80)):
        twice.commit(twice.write(start, stop), run="other")
    with pytest.raises(TableReplaced, match="another table is there now"):
        twice.commit(facts, snapshot=snapshot)


def test_a_commit_that_landed_in_another_table_makes_that_table_refused(twice: "SmallTable") -> None:  # fault P07
    log = put_aside(twice)
    twice.table.snapshot()
    for version in (1, 2):
        entry(twice, version).write_bytes((log / f"{version:020d}.json").read_bytes())
    with pytest.raises(CursorMismatch, match="was made for the table"):
        twice.table.existing()


def test_a_commit_is_not_reported_if_the_table_was_replaced_under_it(twice: "SmallTable") -> None:  # fault P07
    snapshot, facts = twice.table.snapshot(), twice.write(80, 90)

    def replace_table(passed: str) -> None:
        """Give all entries the id of another table, right after the write."""
        if passed == "log entry written":
            for path in (Path(twice.uri) / "_delta_log").glob("*.json"):
                path.write_text(path.read_text().replace(snapshot.table_id, "another"))

    with (
        patch.object(table_module, "failpoint", replace_table),
        pytest.raises(TableReplaced, match="another table is there now"),
    ):
        twice.commit(facts, snapshot=snapshot)


@pytest.mark.parametrize("value", ["true", None], ids=["set", "unset"])
def test_a_table_whose_log_others_clean_up_is_refused(value: str | None, twice: "SmallTable") -> None:  # fault P06
    metadata = entry(twice, 0)
    configured = f'"delta.enableExpiredLogCleanup":"{value}"' if value else ""
    text = metadata.read_text()
    assert '"delta.enableExpiredLogCleanup":"false"' in text
    metadata.write_text(text.replace('"delta.enableExpiredLogCleanup":"false"', configured))
    with pytest.raises(TableForeign, match=r"enableExpiredLogCleanup = true.*SET TBLPROPERTIES"):
        twice.table.existing()


def test_no_commit_of_penstock_cleans_up_the_log(twice: "SmallTable") -> None:  # fault P06
    """Somebody sets the properties after the check, and Delta cleans up after the checkpoint that follows a commit."""
    cleaning = {
        "delta.enableExpiredLogCleanup": "true",
        "delta.logRetentionDuration": "interval 0 days",
        "delta.checkpointInterval": "1",
    }
    nothing = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    twice.handle().alter.set_table_properties(cleaning, post_commithook_properties=nothing)
    for version in range(3):
        os.utime(entry(twice, version), (0, 0))
    with patch.object(snapshot_checks, "_check_log_is_kept"):
        twice.commit(twice.write(80, 90))
        clean(twice.table, keep=timedelta(days=1), target_bytes=2**20, dry_run=False)
        assert (Path(twice.uri) / "_delta_log" / "_last_checkpoint").exists()
        assert [ledger.sequence for _, ledger in twice.table.entries(twice.table.snapshot())] == [3, 2, 1]
