"""Verify: what is whole is proven, and each way of being wrong is named with its range."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction

from pipelines.loading.commit import Loading, commit
from pipelines.loading.ledger import Entry, Kind, Range, Standing, Topic
from pipelines.loading.table import LakeTable
from pipelines.loading.verify import Proof, verify
from pipelines.loading.work import Facts
from resources.lake import Lake

if TYPE_CHECKING:
    from tests.small_table import SmallTable


def proof(small: "SmallTable") -> Proof:
    return verify(small.table)


def add(small: "SmallTable", path: str) -> AddAction:
    size = (Path(small.uri) / path).stat().st_size
    return AddAction(path, size, {"date": "2026-01-02"}, 0, data_change=True, stats="{}")


def forge(small: "SmallTable", facts: Facts, *, covered: tuple[int, int]) -> None:
    """Commit what no load would."""
    at = small.table.snapshot()
    entry = Entry(
        commit="forged",
        run="forger",
        code="test",
        kind=Kind.LOAD,
        sequence=at.next_sequence,
        topic=small.topic,
        ranges=(Range.of(facts),),
        covered={facts.id: covered},
    )
    small.table.append(at, entry, [facts])


def test_a_whole_table_is_proven(small: "SmallTable") -> None:
    small.commit(small.write(100, 150), small.write(0, 20, partition=1))
    small.commit(small.write(150, 180))
    small.commit(small.write(0, 100))
    found = proof(small)
    assert (found.proven, found.problems) == (True, ())
    assert [(one.partition, one.start, one.end, one.rows) for one in found.partitions] == [
        (0, 0, 180, 18),
        (1, 0, 20, 2),
    ]
    assert all(one.missing == one.duplicates == 0 for one in found.partitions)


def test_an_empty_table_is_proven(small: "SmallTable") -> None:
    assert proof(small).as_dict() == {
        "topic": "clicks",
        "table": small.uri,
        "proven": True,
        "problems": [],
        "partitions": [],
    }


def test_no_table_is_not_proven(small: "SmallTable", tmp_path: Path) -> None:
    found = verify(LakeTable.of(Lake(root=str(tmp_path)), "main", "views"))
    assert not found.proven
    assert "there is no table" in found.problems[0]


def test_a_deleted_file_is_named_with_its_range(small: "SmallTable") -> None:
    lost = small.write(50, 80)
    small.commit(small.write(0, 50))
    small.commit(lost)
    (Path(small.uri) / str(lost.path)).unlink()
    found = proof(small)
    assert not found.proven
    assert f"the data file {lost.path} is missing or cut: it held partition 0-0 [50, 80)" in found.problems
    assert [(one.rows, one.missing) for one in found.partitions] == [(5, 3)]


def test_rows_that_are_missing_from_a_file_are_counted(small: "SmallTable") -> None:
    facts = small.write(0, 50)
    small.commit(facts)
    file = Path(small.uri) / str(facts.path)
    pq.write_table(pq.read_table(file, partitioning=None).slice(0, 3), file)
    small.handle().create_write_transaction(
        [add(small, str(facts.path))], mode="append", schema=small.handle().schema(), partition_by=["date"]
    )
    found = proof(small)
    assert "partition 0-0 [0, 50) holds 3 rows, its commit counted 5" in found.problems
    assert [one.missing for one in found.partitions] == [2]


def test_rows_that_are_there_twice_are_counted(small: "SmallTable") -> None:
    facts = small.write(0, 50)
    small.commit(facts)
    again = "date=2026-01-02/again.parquet"
    file = Path(small.uri) / str(facts.path)
    pq.write_table(pq.read_table(file, partitioning=None).slice(0, 3), Path(small.uri) / again)
    small.handle().create_write_transaction(
        [add(small, again)], mode="append", schema=small.handle().schema(), partition_by=["date"]
    )
    found = proof(small)
    assert "partition 0-0 [0, 50) holds 3 rows more than once" in found.problems
    assert [one.duplicates for one in found.partitions] == [3]


def test_rows_outside_of_the_ranges_are_counted(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    foreign = str(small.write(500, 520).path)
    small.handle().create_write_transaction(
        [add(small, foreign)], mode="append", schema=small.handle().schema(), partition_by=["date"]
    )
    assert "2 rows lie outside of every committed range" in proof(small).problems


def test_a_hole_between_ranges_is_named(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    forge(small, small.write(60, 80), covered=(0, 80))
    assert "partition 0-0 [60, 80) does not follow the range before it, which ended at 50" in proof(small).problems


def test_ranges_that_do_not_reach_the_cursor_are_named(small: "SmallTable") -> None:
    forge(small, small.write(0, 50), covered=(0, 80))
    assert "partition 0-0 is told to be covered [0, 80), its ranges cover (0, 50)" in proof(small).problems


def test_a_range_over_a_part_of_an_older_one_is_named(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    forge(small, small.write(40, 80), covered=(0, 80))
    assert "partition 0-0 [0, 50) is covered in part by a later commit" in proof(small).problems


def test_a_table_that_a_load_would_not_go_on_from_is_not_proven(small: "SmallTable") -> None:  # L14
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    small.handle().restore(1)
    found = proof(small)
    assert any(problem.startswith("version 3 restored version 1") for problem in found.problems)


def test_each_life_of_a_topic_is_proven_by_itself(small: "SmallTable") -> None:  # B05
    small.commit(small.write(0, 50))
    small.topic = Topic(cluster="main", name="clicks", incarnation="8")
    facts = small.write(0, 30)
    stands = Standing(topic=small.topic, replaced="7")
    commit(small.table, small.table.snapshot(), Loading(standing=stands, facts=(facts,), run="run"))
    found = proof(small)
    assert found.proven
    assert [(one.incarnation, one.start, one.end, one.rows) for one in found.partitions] == [
        ("8", 0, 30, 3),
        ("7", 0, 50, 5),
    ]


def test_a_cursor_that_does_not_stand_where_the_ranges_end_is_named(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    properties = CommitProperties(app_transactions=[Transaction(small.topic.app_id(small.write(0, 10).id), 40)])
    small.handle().create_write_transaction(
        [], mode="append", schema=small.handle().schema(), commit_properties=properties
    )
    assert "partition 0-0: the cursor stands at 40, the newest commit left it at 50" in proof(small).problems
