"""The commit: files and offsets together, once, and only from where the cursor was read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError

from kafka_io.model import BrokerPartition
from pipelines.loading import ledger
from pipelines.loading.commit import commit, committable, spans
from pipelines.loading.work import Facts, Failure
from resources.errors import (
    CommitRefused,
    CommitUnknown,
    CursorStrayed,
    FileRefused,
    LakeUnavailable,
    TableForeign,
    TopicRecreated,
)

if TYPE_CHECKING:
    from tests.pipelines.loading.conftest import SmallTable

A, B = BrokerPartition(0, 0), BrokerPartition(0, 1)


def fact(start: int, stop: int, *, partition: int = 0, failed: bool = False) -> Facts:
    failure = Failure(kind="Corrupt", reason="wrong CRC") if failed else None
    return Facts(broker=0, partition=partition, start=start, stop=stop, failure=failure)


def test_rows_and_cursor_become_visible_together(small: "SmallTable") -> None:
    version = small.commit(small.write(0, 50), small.write(0, 20, partition=1))
    assert (version, small.rows()) == (1, 7)
    assert small.covered() == {A: (0, 50), B: (0, 20)}
    assert small.handle().transaction_version(small.topic.app_id(A)) == 50


def test_a_slice_of_gaps_alone_moves_the_cursor_without_a_file(small: "SmallTable") -> None:
    small.commit(small.write(0, 50, rows=0))
    assert small.covered() == {A: (0, 50)}
    assert small.handle().file_uris() == []


def test_a_failed_slice_holds_back_only_what_follows_it_in_its_partition() -> None:  # S07
    facts = [
        fact(0, 10),
        fact(10, 20, failed=True),
        fact(20, 30),
        fact(0, 10, partition=1),
        fact(10, 20, partition=1),
    ]
    assert committable(facts, {}) == [facts[0], facts[3], facts[4]]


def test_a_failed_slice_of_a_backfill_holds_back_what_lies_before_it() -> None:
    facts = [fact(0, 10), fact(10, 20, failed=True), fact(20, 30), fact(50, 60), fact(60, 70, failed=True)]
    covered = {A: (30, 50)}
    good = committable(facts, covered)
    assert good == [facts[2], facts[3]]
    assert spans(covered, good) == {A: (20, 60)}


def test_of_two_runs_with_the_same_range_one_wins(small: "SmallTable") -> None:  # L05, O03
    first, second = small.handle(), small.handle()
    small.commit(small.write(0, 50), table=first, run="first")
    with pytest.raises(CommitRefused, match="run first moved the cursor first"):
        small.commit(small.write(0, 50), table=second, run="second")
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})


def test_a_zombie_never_moves_the_cursor_back(small: "SmallTable") -> None:  # L06, S05
    zombie = small.handle()
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    with pytest.raises(CommitRefused):
        small.commit(small.write(0, 50), table=zombie)
    assert (small.rows(), small.covered()) == (8, {A: (0, 80)})


def test_a_backfill_and_a_load_of_one_partition_collide(small: "SmallTable") -> None:  # O03
    small.commit(small.write(50, 60))
    backfill, load = small.handle(), small.handle()
    small.commit(small.write(60, 70), table=load)
    with pytest.raises(CommitRefused):
        small.commit(small.write(0, 50), table=backfill)
    small.commit(small.write(0, 50))
    assert small.covered() == {A: (0, 70)}


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(b"short")], ids=["missing", "cut"])
def test_a_file_that_is_not_what_the_worker_wrote_is_refused(small: "SmallTable", harm: object) -> None:  # L07
    facts = small.write(0, 50)
    harm(Path(small.uri) / str(facts.path))  # type: ignore[operator]
    with pytest.raises(FileRefused, match=r"date=2026-01-02/0-0-.*parquet"):
        small.commit(facts)
    assert small.covered() == {}


class Unreliable:
    """A handle whose commit call fails: before it does anything, or after it landed."""

    def __init__(self, table: DeltaTable, *, landed: bool) -> None:
        self._table = table
        self._landed = landed

    def __getattr__(self, name: str) -> object:
        return getattr(self._table, name)

    def create_write_transaction(self, *args: Any, **kwargs: Any) -> None:
        """Fail."""
        if self._landed:
            self._table.create_write_transaction(*args, **kwargs)
        raise DeltaError("connection reset by peer")


def test_a_commit_whose_answer_is_lost_is_found_by_its_id(small: "SmallTable") -> None:  # L02, L03, O04
    facts = small.write(0, 50)
    assert small.commit(facts, table=Unreliable(small.handle(), landed=True)) == 1  # type: ignore[arg-type]
    assert (small.rows(), small.covered()) == (5, {A: (0, 50)})


def test_a_commit_that_did_not_land_says_so_and_deletes_nothing(small: "SmallTable") -> None:  # L03, L04
    facts = small.write(0, 50)
    with pytest.raises(LakeUnavailable, match="did not land"):
        small.commit(facts, table=Unreliable(small.handle(), landed=False))  # type: ignore[arg-type]
    assert (Path(small.uri) / str(facts.path)).exists()
    small.commit(facts)
    assert small.rows() == 5


def test_a_commit_that_cannot_be_looked_up_is_told_as_unknown(small: "SmallTable") -> None:  # L03
    class Blind(type(small.lake)):  # type: ignore[misc]
        def open(self, uri: str) -> None:
            raise LakeUnavailable(f"no answer from {uri}")

    facts = small.write(0, 50)
    entry = small.entry([facts], {})
    lost = Unreliable(small.handle(), landed=True)
    with pytest.raises(CommitUnknown):
        commit(Blind(root=small.lake.root), lost, entry, [facts])  # type: ignore[arg-type]


def test_another_incarnation_is_refused(small: "SmallTable") -> None:  # B05, B06
    small.commit(small.write(0, 50))
    other = ledger.Topic(cluster="main", name="clicks", incarnation="8")
    with pytest.raises(TopicRecreated, match=r"incarnation 7 .* has 8"):
        ledger.standing(small.lake, small.handle(), other)


def test_a_topic_that_was_given_an_id_goes_on_under_the_name_it_began_with(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    upgraded = ledger.Topic(cluster="main", name="clicks", incarnation="AAAAAAAAAAAAAAAAAAAABw")
    standing = ledger.standing(small.lake, small.handle(), upgraded, also=("7",))
    assert (standing.topic, standing.covered) == (small.topic, {A: (0, 50)})


def test_a_restored_table_whose_cursor_stayed_ahead_is_refused(small: "SmallTable") -> None:  # L14
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    small.handle().restore(1)
    with pytest.raises(CursorStrayed):
        small.covered()


def test_a_table_of_somebody_else_is_refused(small: "SmallTable") -> None:
    properties = CommitProperties(app_transactions=[Transaction("theirs", 1)])
    small.handle().create_write_transaction(
        [], mode="append", schema=small.handle().schema(), commit_properties=properties
    )
    with pytest.raises(TableForeign, match="did not load"):
        small.covered()


def test_a_table_whose_cursors_expire_is_refused(small: "SmallTable") -> None:  # L15
    small.handle().alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 1 days"})
    with pytest.raises(TableForeign, match="setTransactionRetentionDuration"):
        small.covered()
