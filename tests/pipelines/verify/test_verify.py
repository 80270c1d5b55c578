"""Verify proves a complete table, and names every kind of damage with its range."""

import gc
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import LoadChange, commit
from pipelines.delta.delta_log import DeltaLog
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicFindings, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_commit import TableCommit
from pipelines.verify import range_file
from pipelines.verify.complete_files import CompleteFiles
from pipelines.verify.verify import Proof, proof_of, verify
from resources.errors import LakeRefused, LakeUnavailable, TableForeign
from resources.printed import printed
from resources.stores.lake import Lake
from resources.stores.object_reads import ObjectReader
from tests.pipelines.loaded import call_compaction

if TYPE_CHECKING:
    from tests.small_table import SmallTable


def proof(small: "SmallTable") -> Proof:
    return verify(small.table)


def add(small: "SmallTable", path: str) -> AddAction:
    size = (Path(small.uri) / path).stat().st_size
    return AddAction(path, size, {"date": "2026-01-02"}, 0, data_change=True, stats="{}")


def forge(small: "SmallTable", facts: SliceFacts, *, covered: tuple[int, int]) -> None:
    """Commit an entry that no load would write."""
    snapshot = small.table.snapshot()
    entry = LedgerEntry(
        commit="forged",
        run="forger",
        code="test",
        kind=CommitKind.LOAD,
        sequence=snapshot.next_sequence,
        ranges=(facts.committed,),
        state=TableState(topic=small.topic, covered={facts.offsets.partition: covered}),
    )
    small.table.write(snapshot, entry, [facts], ())


def test_a_whole_table_is_proven(small: "SmallTable") -> None:
    small.commit(small.write(100, 150), small.write(0, 20, partition=1))
    small.commit(small.write(150, 180))
    small.commit(small.write(0, 100))
    result = proof(small)
    assert (result.proven, result.problems) == (True, ())
    assert [
        (partition.offsets.partition.partition, partition.offsets.start, partition.offsets.stop, partition.rows)
        for partition in result.partitions
    ] == [
        (0, 0, 180, 18),
        (1, 0, 20, 2),
    ]
    assert all(partition.missing == partition.duplicates == 0 for partition in result.partitions)


def test_many_ranges_are_counted_in_parts(small: "SmallTable", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_file, "_RANGES_AT_ONCE", 2)
    for start in range(0, 50, 10):
        small.commit(small.write(start, start + 10))
    result = proof(small)
    assert result.problems == ()
    assert [(partition.offsets.stop, partition.rows) for partition in result.partitions] == [(50, 5)]


def test_an_empty_table_is_proven(small: "SmallTable") -> None:
    assert printed(proof(small)) == {
        "topic": "clicks",
        "table": small.uri,
        "proven": True,
        "problems": [],
        "errors": [],
        "partitions": [],
        "values_read": False,
    }


def test_no_table_is_not_proven(small: "SmallTable", tmp_path: Path) -> None:
    result = verify(DeltaLakeTable.of(Lake(root=str(tmp_path)), "main", "views"))
    assert not result.proven
    assert "there is no table" in result.problems[0]


def test_a_check_that_does_not_end_proves_nothing(small: "SmallTable") -> None:
    def check(_: LakeTable) -> Proof:
        raise LakeUnavailable("no answer")

    result = proof_of(small.table, check)
    assert (result.topic, result.table, result.proven) == ("clicks", small.uri, False)
    [problem] = result.problems
    assert problem.startswith("the check did not end: LakeUnavailable: no answer")


def test_a_deleted_file_is_named_with_its_range(small: "SmallTable") -> None:
    lost = small.write(50, 80)
    small.commit(small.write(0, 50))
    small.commit(lost)
    path = lost.files[0].path
    (Path(small.uri) / path).unlink()
    result = proof(small)
    assert not result.proven
    repair = (
        "`penstock replay clicks --from earliest --to latest` fetches the rows again, or `penstock erase clicks "
        "--missing` records that they are gone"
    )
    lost_range = "partition 0-0 [50, 80)"
    assert f"the data file {path} is missing or truncated: it held {lost_range}; {repair}" in result.problems
    assert [(partition.rows, partition.missing) for partition in result.partitions] == [(5, 3)]


def test_a_file_that_cannot_be_read_is_named_and_the_rows_of_the_others_are_counted(small: "SmallTable") -> None:
    damaged = small.write(50, 80)
    small.commit(small.write(0, 50))
    small.commit(damaged)
    path = damaged.files[0].path
    file = Path(small.uri) / path
    file.write_bytes(b"x" * file.stat().st_size)
    result = proof(small)
    [problem] = [problem for problem in result.problems if "is damaged" in problem]
    assert problem.startswith(f"the data file {path} is damaged: move it away, and `penstock replay clicks ")
    assert [(partition.rows, partition.missing) for partition in result.partitions] == [(5, 3)]


def test_an_error_that_no_file_alone_explains_is_raised(small: "SmallTable", monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[object] = []

    def rows(_: object, window: object) -> Iterator[object]:
        reads.append(window)
        raise LakeRefused("the store denies access")

    small.commit(small.write(0, 50))
    monkeypatch.setattr(CompleteFiles, "rows", rows)
    with pytest.raises(LakeRefused, match="denies access"):
        verify(small.table)
    assert len(reads) == 1


def test_a_file_of_another_size_is_named_also_if_it_holds_the_same_rows(small: "SmallTable") -> None:  # fault G06
    facts = small.write(0, 50)
    small.commit(facts)
    file = Path(small.uri) / facts.files[0].path
    pq.write_table(pq.read_table(file, partitioning=None), file, compression="none")
    assert file.stat().st_size != facts.files[0].size
    assert any(problem.startswith(f"the data file {facts.files[0].path}") for problem in proof(small).problems)


# fault G07
@pytest.mark.parametrize("gap", [0, 49, 51])
def test_rows_and_gaps_of_a_partition_without_a_broker_must_make_up_the_range(small: "SmallTable", gap: int) -> None:
    """From 0.8 on offsets count records, and partitions belong to no broker."""
    offsets = OffsetRange(BrokerPartition(None, 0), 0, 50)
    small.commit(SliceFacts(range=CommittedRange(offsets=offsets, gaps={"control": gap})))
    (problem,) = proof(small).problems
    assert problem.startswith("partition 0 [0, 50)")
    assert f" {gap} offsets" in problem


def test_rows_that_are_missing_from_a_file_are_counted(small: "SmallTable") -> None:
    facts = small.write(0, 50)
    small.commit(facts)
    file = Path(small.uri) / facts.files[0].path
    pq.write_table(pq.read_table(file, partitioning=None).slice(0, 3), file)
    small.handle().create_write_transaction(
        [add(small, facts.files[0].path)], mode="append", schema=small.handle().schema(), partition_by=["date"]
    )
    result = proof(small)
    assert "partition 0-0 [0, 50) holds 3 rows, but its commit counted 5" in result.problems
    assert not any("add up" in problem for problem in result.problems)  # offsets of 0.7 are bytes
    assert [partition.missing for partition in result.partitions] == [2]


def test_duplicate_rows_are_counted(small: "SmallTable") -> None:
    facts = small.write(0, 50)
    small.commit(facts)
    again = "date=2026-01-02/again.parquet"
    file = Path(small.uri) / facts.files[0].path
    pq.write_table(pq.read_table(file, partitioning=None).slice(0, 3), Path(small.uri) / again)
    small.handle().create_write_transaction(
        [add(small, again)], mode="append", schema=small.handle().schema(), partition_by=["date"]
    )
    result = proof(small)
    assert "partition 0-0 [0, 50) holds 3 rows more than once" in result.problems
    assert [partition.duplicates for partition in result.partitions] == [3]


def test_a_copy_at_a_position_that_only_0_7_has_balances_no_lost_row(small: "SmallTable") -> None:  # fault A05
    partition = BrokerPartition(None, 0)
    columns = {"offset": pa.array(range(10), pa.int64()), "value": pa.array([b"x"] * 10)}
    facts = small.write_columns(OffsetRange(partition, 0, 10), columns, broker=None, inner=None)
    small.commit(facts)
    assert proof(small).problems == ()
    file = Path(small.uri) / facts.files[0].path
    rows = pq.read_table(file, partitioning=None)
    copy = rows.slice(6, 1).set_column(rows.schema.get_field_index("inner"), "inner", pa.array([1], pa.int32()))
    pq.write_table(pa.concat_tables([rows.slice(0, 5), copy, rows.slice(6)]), file)
    small.handle().create_write_transaction(
        [add(small, facts.files[0].path)], mode="append", schema=small.handle().schema(), partition_by=["date"]
    )
    call_compaction(small.uri)
    assert proof(small).problems == (
        "1 rows have a position inside a compressed message, as only rows of 0.7 do",
        "partition 0 [0, 10) holds 1 rows more than once",
        "partition 0 [0, 10) holds 9 rows, but its commit counted 10",
    )


def test_rows_outside_of_the_ranges_are_counted(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    foreign = small.write(500, 520).files[0].path
    small.handle().create_write_transaction(
        [add(small, foreign)], mode="append", schema=small.handle().schema(), partition_by=["date"]
    )
    assert "2 rows are outside of every committed range" in proof(small).problems


def test_a_hole_between_ranges_is_named(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    forge(small, small.write(60, 80), covered=(0, 80))
    assert "partition 0-0 [60, 80) does not follow the range before it, which ended at 50" in proof(small).problems


def test_ranges_that_do_not_reach_the_cursor_are_named(small: "SmallTable") -> None:
    forge(small, small.write(0, 50), covered=(0, 80))
    assert "partition 0-0: the ledger covers [0, 80), but its ranges cover [0, 50)" in proof(small).problems


def test_a_range_over_a_part_of_an_older_one_is_named(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    forge(small, small.write(40, 80), covered=(0, 80))
    assert "a later commit replaces only a part of partition 0-0 [0, 50)" in proof(small).problems


def test_a_table_from_which_no_load_can_continue_is_not_proven(small: "SmallTable") -> None:  # fault L14
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    small.handle().restore(1)
    result = proof(small)
    assert any(problem.startswith("version 3 restored version 1") for problem in result.problems)


def test_each_incarnation_of_a_topic_is_proven_by_itself(small: "SmallTable") -> None:  # fault B05
    small.commit(small.write(0, 50))
    small.topic = TopicIdentity(cluster="main", name="clicks", incarnation="8")
    facts = small.write(0, 30)
    stands = TableState(topic=small.topic, findings=TopicFindings(replaced="7"))
    commit(small.table, small.table.snapshot(), LoadChange(state=stands, facts=(facts,), run="run"))
    result = proof(small)
    assert result.proven
    assert [
        (partition.incarnation, partition.offsets.start, partition.offsets.stop, partition.rows)
        for partition in result.partitions
    ] == [
        ("8", 0, 30, 3),
        ("7", 0, 50, 5),
    ]


# fault U19
@pytest.mark.slow
def test_the_memory_for_a_history_does_not_grow_with_its_commits(small: "SmallTable") -> None:
    """While the entries of 300 commits are read, one after the other, the ranges of earlier ones are not in memory."""
    partitions, alive = [BrokerPartition(0, number) for number in range(20)], []

    def commits(*_: object, **__: object) -> Iterator[TableCommit]:
        for sequence in range(300, 0, -1):
            ranges = tuple(
                CommittedRange(offsets=OffsetRange(partition, 10 * sequence - 10, 10 * sequence), gaps={"empty": 1})
                for partition in partitions
            )
            covered = dict.fromkeys(partitions, (0, 10 * sequence))
            commit = f"commit {sequence}"
            if sequence % 50 == 0:
                alive.append(sum(issubclass(type(item), CommittedRange) for item in gc.get_objects()))
            entry = LedgerEntry(
                commit=commit,
                run="run",
                kind=CommitKind.LOAD,
                sequence=sequence,
                ranges=ranges,
                state=TableState(topic=small.topic, covered=covered),
            )
            yield TableCommit(version=sequence, time=datetime.now(UTC), operation="WRITE", entry=entry)

    with patch.object(DeltaLakeTable, "commits", commits):
        result = proof(small)
    assert [(partition.offsets.start, partition.offsets.stop) for partition in result.partitions] == [(0, 3000)] * 20
    assert [partition.gaps for partition in result.partitions] == [{"empty": 300}] * 20
    assert max(alive) <= alive[0] + 2 * len(partitions)


# fault P05
@pytest.mark.parametrize(
    ("protocol", "feature"),
    [
        ({"minReaderVersion": 3, "readerFeatures": ["deletionVectors", "timestampNtz"]}, "deletionVectors"),
        ({"minReaderVersion": 2}, "columnMapping"),
    ],
)
def test_a_table_whose_rows_readers_see_differently_is_refused_by_the_name_of_the_feature(
    protocol: dict[str, Any], feature: str, small: "SmallTable"
) -> None:
    small.commit(small.write(0, 50))
    writer = {"minWriterVersion": 7, "writerFeatures": protocol.get("readerFeatures", [])}
    action = {"protocol": {**protocol, **(writer if "readerFeatures" in protocol else {"minWriterVersion": 5})}}
    entry = Path(small.uri) / "_delta_log" / f"{2:020d}.json"
    entry.write_text(json.dumps({"commitInfo": {"operation": "DELETE"}}) + "\n" + json.dumps(action) + "\n")
    result = proof(small)
    [problem] = result.problems
    assert problem.startswith(f"the table uses the Delta feature {feature}, ")
    assert f"DROP FEATURE {feature}" in problem
    assert result.partitions == ()
    with pytest.raises(TableForeign, match=feature):
        small.table.existing()


def test_a_cursor_that_is_not_where_the_ranges_end_is_named(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    properties = CommitProperties(
        app_transactions=[Transaction(small.topic.app_id(small.write(0, 10).offsets.partition), 40)]
    )
    small.handle().create_write_transaction(
        [], mode="append", schema=small.handle().schema(), commit_properties=properties
    )
    assert "partition 0-0: the cursor is 40, but the newest commit left it at 50" in proof(small).problems


# fault U19
def test_the_cursors_of_all_partitions_are_read_in_one_pass_over_the_log(
    small: "SmallTable", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library deltalake reads the log for each `txn` that it is asked for."""
    small.commit(*(small.write(0, 10, partition=number) for number in range(6)))
    small.commit(*(small.write(10, 20, partition=number) for number in range(6)))
    asked: list[str] = []
    read: list[int] = []
    transaction_version, entry_text = DeltaTable.transaction_version, DeltaLog.text

    def counted_version(handle: DeltaTable, app_id: str) -> int | None:
        asked.append(app_id)
        return transaction_version(handle, app_id)

    def counted_text(log: DeltaLog, reader: ObjectReader, version: int) -> bytes:
        read.append(version)
        return entry_text(log, reader, version)

    monkeypatch.setattr(DeltaTable, "transaction_version", counted_version)
    monkeypatch.setattr(DeltaLog, "text", counted_text)
    assert proof(small).problems == ()
    assert asked == []
    assert read == [2, 1, 0, 2], "one pass, and the newest entry to see whether a load could continue"


@pytest.mark.parametrize("number", [0, 1])
def test_a_cursor_that_only_an_earlier_commit_moved_is_still_compared(small: "SmallTable", number: int) -> None:
    small.commit(small.write(0, 10), small.write(0, 10, partition=1))
    small.commit(small.write(10, 20, partition=1 - number))
    assert proof(small).problems == ()
    entry = Path(small.uri) / "_delta_log" / f"{1:020d}.json"
    app_id = small.topic.app_id(BrokerPartition(0, number))
    lines = [line for line in entry.read_text().splitlines(keepends=True) if app_id not in line or "txn" not in line]
    entry.write_text("".join(lines))
    cursor, link = proof(small).problems
    assert cursor == f"partition 0-{number}: the cursor is None, but the newest commit left it at 10"
    assert link.startswith("version 2 was planned on another version 1 than the one in the log")  # fault E05


def test_ranges_without_a_problem_do_not_count_toward_the_maximum_of_problems(
    small: "SmallTable", monkeypatch: pytest.MonkeyPatch
) -> None:
    small.commit(small.write(0, 50))
    lacking = small.write(50, 80)
    small.commit(lacking)
    file = Path(small.uri) / lacking.files[0].path
    rows = pq.read_table(file, partitioning=None)
    size = file.stat().st_size
    pq.write_table(rows.slice(0, 1), file)
    entry = Path(small.uri) / "_delta_log" / f"{2:020d}.json"
    entry.write_text(entry.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}'))
    monkeypatch.setattr("pipelines.verify.verify.MAX_PROBLEMS", 1)
    assert proof(small).problems == ("partition 0-0 [50, 80) holds 1 rows, but its commit counted 3",)
