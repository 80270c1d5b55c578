"""Rows that another program took out, and that nobody can fetch again, are recorded as what they are: gone."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.delta.delta_log_segment import commit_file
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment
from pipelines.ledger.committed_range import ExactCause
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase_result import TopicErase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.maintenance.missing import MissingRequest, erase_missing
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import update_state
from pipelines.verify.verify import verify
from resources.errors import ErasedSince, TableNotProven
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.loaded import call_compaction
from tests.pipelines.maintenance.old_rows import DatedTable
from tests.pipelines.taken_out import rows_of, take_out
from tests.small_table import SmallTable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

ONE = BrokerPartition(None, 0)


@pytest.fixture
def dated(tmp_path: Path) -> DatedTable:
    """Three loads of ten records each. Offsets 12 and 13 were compacted away before they were loaded."""
    table = DatedTable(tmp_path / "lake")
    table.commit(table.records(0, 10))
    table.commit(table.records(10, 20, without={12, 13}))
    table.commit(table.records(20, 30))
    return table


def recorded(table: SmallTable, **options: Any) -> TopicErase:
    return erase_missing(MissingRequest(table=table.table, run="missing", name="T-1", **options))


def gaps(table: SmallTable) -> dict[str, int]:
    [partition] = verify(table.table).partitions
    return partition.gaps


def deleted(table: SmallTable, where: str) -> None:
    table.handle().delete(where)


def erased_offsets(table: DatedTable) -> list[int]:
    """The offsets in the exact sets of erased rows."""
    sets = [own for part in table.ranges() for own in table.table.exact_sets(part).values()]
    return sorted(
        offset for own in sets for offset in range(40) if own.within(OffsetRange(ONE, offset, offset + 1)).count
    )


def test_deleted_rows_are_recorded_and_loads_continue(dated: DatedTable) -> None:  # fault P24
    deleted(dated, '"offset" in (3, 4, 25)')
    late = dated.records(30, 40)
    with pytest.raises(TableNotProven, match="`penstock erase clicks --missing` records that they are gone"):
        dated.commit(late)
    files = set(dated.handle().file_uris())
    result = recorded(dated)
    assert (result.failure, result.version, result.rows, result.gaps, result.files) == (None, 5, 3, 0, 0)
    [reason] = result.reasons
    assert reason.startswith("removed by version 4, DELETE by delta-rs:py-")
    assert (dated.problems(), gaps(dated)) == ((), {"compacted": 2, "erased": 3})
    assert erased_offsets(dated) == [3, 4, 25]
    assert set(dated.handle().file_uris()) == files
    dated.commit(late)
    assert dated.problems() == ()


def test_other_gaps_of_a_range_become_erased_too_because_nobody_can_tell_them_apart(dated: DatedTable) -> None:
    deleted(dated, '"offset" = 15')
    result = recorded(dated)
    assert (result.rows, result.gaps, result.partitions[0].rows) == (1, 2, 1)
    assert (dated.problems(), gaps(dated)) == ((), {"erased": 3})
    assert erased_offsets(dated) == [12, 13, 15]


def test_offsets_of_exact_sets_stay_what_they_are(dated: DatedTable) -> None:
    take_out(dated.table, ONE, rows_of(1))
    take_out(dated.table, ONE, rows_of(2), cause=ExactCause.FILTERED)
    deleted(dated, '"offset" in (3, 9)')
    assert recorded(dated).rows == 2
    assert (dated.problems(), gaps(dated)) == ((), {"compacted": 2, "erased": 3, "filtered": 1})


@pytest.mark.parametrize("many", [False, True])
def test_ranges_of_several_partitions_that_lack_all_rows_are_recorded(
    many: bool, dated: DatedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.table.exact_sets._MAX_INLINE_BYTES", 0 if many else 256)
    dated.commit(dated.records(0, 50, partition=1))
    deleted(dated, '"offset" >= 20')
    result = recorded(dated)
    assert [(part.partition, part.rows) for part in result.partitions] == [(0, 10), (1, 30)]
    assert [part.gaps for part in verify(dated.table).partitions] == [{"compacted": 2, "erased": 10}, {"erased": 30}]
    clean(dated.table, keep=timedelta(), target_bytes=1, dry_run=False)
    assert dated.problems() == ()


def test_each_change_that_removed_rows_is_a_reason(dated: DatedTable) -> None:
    deleted(dated, '"offset" = 3')
    deleted(dated, '"offset" = 4')
    result = recorded(dated)
    assert [reason.partition(",")[0] for reason in result.reasons] == ["removed by version 4", "removed by version 5"]
    entry = dated.table.snapshot().entry
    assert entry is not None
    [choice] = entry.choices
    assert str(choice).startswith("missing = erase: partition 0 [3, 5), removed by version 4, DELETE by delta-rs:py-")
    assert deleted_again(dated, '"offset" = 5') == ["removed by version 7"]


def deleted_again(table: DatedTable, where: str) -> list[str]:
    deleted(table, where)
    return [reason.partition(",")[0] for reason in recorded(table, dry_run=True).reasons]


def test_a_change_that_a_rewind_took_back_is_no_reason(dated: DatedTable) -> None:
    deleted(dated, '"offset" = 3')
    rewind(plan_rewind(dated.table, 3, run="rewind"))
    assert deleted_again(dated, '"offset" = 4') == ["removed by version 6"]


def test_rows_that_a_compaction_lost_are_recorded(dated: DatedTable) -> None:
    """Loads continue from such a table, and only `verify` sees it."""
    deleted(dated, '"offset" in (3, 4)')
    call_compaction(dated.uri)
    dated.commit(dated.records(30, 40))
    result = recorded(dated)
    assert (result.rows, result.reasons) == (2, ("no commit says what removed them",))
    assert (dated.problems(), erased_offsets(dated)) == ((), [3, 4])


def test_rows_of_a_lost_file_are_recorded(dated: DatedTable) -> None:
    facts = dated.records(30, 40)
    dated.commit(facts)
    path = facts.files[0].path
    (Path(dated.uri) / path).unlink()
    assert "`penstock erase clicks --missing` records that they are gone" in dated.problems()[0]
    result = recorded(dated)
    assert (result.failure, result.rows, result.files) == (None, 10, 1)
    assert result.reasons == (f"the data file {path} is lost",)
    assert (dated.problems(), erased_offsets(dated)) == ((), list(range(30, 40)))
    assert len(dated.offsets()) == 28


def test_a_dry_run_changes_nothing(dated: DatedTable) -> None:
    deleted(dated, '"offset" = 3')
    files = sorted(Path(dated.uri).rglob("*"))
    result = recorded(dated, dry_run=True)
    assert (result.rows, result.version, result.dry_run) == (1, 4, True)
    assert sorted(Path(dated.uri).rglob("*")) == files


def test_a_whole_table_is_left_as_it_is(dated: DatedTable) -> None:
    result = recorded(dated)
    assert (result.failure, result.rows, result.version) == (None, 0, 3)


def test_rows_that_were_added_and_taken_away_again_leave_a_table_that_loads(dated: DatedTable) -> None:
    """Nothing is missing then, but no load continues from such changes before they are recorded."""
    added = dated.handle().to_pyarrow_table().slice(0, 1)
    added = added.set_column(added.schema.get_field_index("offset"), "offset", pa.array([77], pa.int64()))
    write_deltalake(dated.handle(), added, mode="append")
    failure = recorded(dated).failure
    assert failure is not None
    assert (
        "more is wrong with the table than missing rows: 1 rows are outside of every committed range" in failure.reason
    )
    deleted(dated, '"offset" = 77')
    assert recorded(dated).version == 6
    assert dated.problems() == ()
    dated.commit(dated.records(30, 40))


def test_rows_that_were_changed_are_refused(dated: DatedTable) -> None:
    deleted(dated, '"offset" = 3')
    dated.handle().update(updates={"value": "arrow_cast('spoilt', 'Binary')"}, predicate='"offset" = 4')
    failure = recorded(dated).failure
    assert failure is not None
    assert (failure.kind, failure.reason.endswith("take it back, or replay these offsets first")) == (
        "EraseRefused",
        True,
    )
    assert "version 5 changed rows of the table" in failure.reason
    assert "it wrote rows of partition 0 [0, 10)" in failure.reason
    assert dated.handle().version() == 5


def test_a_row_that_is_there_twice_is_refused(dated: DatedTable) -> None:
    """The number of rows is right again, but they are not the right ones."""
    row = dated.handle().to_pyarrow_table(filters=[("offset", "=", 5)])
    deleted(dated, '"offset" = 3')
    write_deltalake(dated.handle(), row, mode="append")
    failure = recorded(dated).failure
    assert failure is not None
    assert failure.kind == "EraseRefused"


def test_rows_of_0_7_are_refused(small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    small.handle().delete('"offset" = 10')
    failure = recorded(small).failure
    assert failure is not None
    assert "In 0.7 offsets count bytes, so nobody can tell at which of them a row is missing" in failure.reason
    assert small.handle().version() == 2


def test_deletion_vectors_that_were_written_into_the_files_are_recorded(dated: DatedTable) -> None:
    """A DELETE with a deletion vector leaves the file; DROP FEATURE writes it again without the row."""
    rows = Path(dated.uri)
    [add] = [action for action in actions_of(dated, 1) if "add" in action]
    remove = {"remove": {"path": add["add"]["path"], "dataChange": True, "deletionTimestamp": 1}}
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
    with_vector = {"add": {**add["add"], "deletionVector": vector}}
    write_log(
        dated, 4, "DELETE", [{"protocol": {**features, "writerFeatures": ["deletionVectors"]}}, remove, with_vector]
    )
    failure = recorded(dated).failure
    assert failure is not None
    assert "DROP FEATURE deletionVectors" in failure.reason
    path = str(add["add"]["path"])
    there = pq.read_table(rows / path, partitioning=None)
    purged = rows / path.replace(".parquet", "-purged.parquet")
    pq.write_table(there.filter(pc.not_equal(there.column("offset"), 7)), purged)
    new = {**add["add"], "path": str(purged.relative_to(rows)), "size": purged.stat().st_size, "dataChange": False}
    remove = {"remove": {**remove["remove"], "dataChange": False, "deletionVector": vector}}
    write_log(dated, 5, "REORG", [remove, {"add": new}])
    write_log(dated, 6, "DROP FEATURE", [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}])
    result = recorded(dated)
    assert (result.failure, result.rows, result.reasons) == (None, 1, ("removed by version 4, DELETE by Spark",))
    assert (dated.problems(), erased_offsets(dated)) == ((), [7])


def actions_of(table: DatedTable, version: int) -> list[dict[str, Any]]:
    return list(map(json.loads, (Path(table.uri) / commit_file(version)).read_text().splitlines()))


def write_log(table: DatedTable, version: int, operation: str, actions: list[dict[str, Any]]) -> None:
    info = {"commitInfo": {"operation": operation, "engineInfo": "Spark", "timestamp": 1}}
    text = "\n".join(map(json.dumps, [info, *actions]))
    (Path(table.uri) / commit_file(version)).write_text(text)


# Other runs.


@pytest.mark.parametrize("lost_by", ["delete", "compaction"])
def test_rows_that_a_load_adds_meanwhile_stay(lost_by: str, dated: DatedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted(dated, '"offset" in (3, 4)')
    if lost_by == "compaction":
        call_compaction(dated.uri)
    waiting: list[Callable[[], object]] = [
        lambda: dated.commit(dated.records(30, 40)),
        lambda: deleted(dated, '"offset" = 5'),
    ]

    def passed(failpoint: str) -> None:
        if failpoint == "before erase entry" and len(waiting) == 2:
            waiting.pop(0 if lost_by == "compaction" else 1)()

    monkeypatch.setattr("pipelines.commit.commit.failpoint", passed)
    result = recorded(dated)
    assert (result.failure, len(waiting)) == (None, 1)
    assert (dated.problems(), erased_offsets(dated)) == ((), [3, 4] if lost_by == "compaction" else [3, 4, 5])


def test_rows_that_a_rewind_brings_back_meanwhile_are_not_recorded(
    dated: DatedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(dated, '"offset" in (3, 4)')
    waiting: list[Callable[[], object]] = [lambda: rewind(plan_rewind(dated.table, 3, run="rewind"))]

    def passed(failpoint: str) -> None:
        if failpoint == "before erase entry" and waiting:
            waiting.pop()()

    monkeypatch.setattr("pipelines.commit.commit.failpoint", passed)
    result = recorded(dated)
    assert (result.failure, result.rows, result.version) == (None, 0, 5)
    assert (dated.problems(), len(dated.offsets())) == ((), 28)


# Rows that were recorded as erased.


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    """Two loads of five records each, whose records the brokers still have; another program deleted two rows."""
    values = [json.dumps({"id": number, "name": f"n{number % 4}"}).encode() for number in range(10)]
    fake.logs = {0: log_of(values[:5])}
    format_ = {"format": "json", "columns": {"id": "long", "name": "string"}, "state": {"key": ["name"]}}
    with fake:
        loaded = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)
        loaded.load()
        append(fake.logs[0], values[5:])
        loaded.load()
        yield loaded


def ids(topic: TypedTopic) -> list[int]:
    return sorted(DeltaTable(topic.table.uri).to_pyarrow_table().column("id").to_pylist())


def test_neither_a_replay_nor_a_rewind_brings_them_back(topic: TypedTopic) -> None:  # faults P16, P24
    DeltaTable(topic.table.uri).delete("id in (2, 9)")
    assert erase_missing(MissingRequest(table=topic.table, run="missing", name="T-1")).rows == 2
    left = [number for number in range(10) if number not in {2, 9}]
    assert topic.replay().changed is False
    assert topic.deep().problems == ()
    with pytest.raises(ErasedSince):
        plan_rewind(topic.table, 2, run="rewind")
    append(topic.fake.logs[0], [b'{"id": 10}'])
    assert topic.load().error is None
    assert ids(topic) == [*left, 10]
    assert verify(topic.table).problems == ()


def copy(increment: Increment) -> Any:
    return increment.arrow(["id"])


@pytest.mark.parametrize("on_replaced", ["apply", "ignore"])
def test_increments_and_state_tables_follow(on_replaced: Any, topic: TypedTopic, tmp_path: Path) -> None:
    output = DeltaOutput(uri=str(tmp_path / "out"))

    def follow() -> None:
        apply_increment(topic.table, copy, consumer="c", into=output, on_replaced=on_replaced)
        update_state(topic.table, topic.settings.options_of("clicks"))

    follow()
    DeltaTable(topic.table.uri).delete("id in (2, 9)")
    erase_missing(MissingRequest(table=topic.table, run="missing", name="T-1"))
    clean(topic.table, keep=timedelta(), target_bytes=1, dry_run=False)
    follow()
    assert sorted(DeltaTable(output.uri).to_pyarrow_table().column("id").to_pylist()) == ids(topic)
    state = DeltaTable(state_output(topic.table).uri).to_pyarrow_table()
    assert sorted(state.column("id").to_pylist()) == [5, 6, 7, 8]


def test_a_certificate_says_what_another_program_deleted(topic: TypedTopic) -> None:
    DeltaTable(topic.table.uri).delete("id in (2, 9)")
    erase_missing(MissingRequest(table=topic.table, run="missing", name="T-1"))
    finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
    made = certify(CertificateRequest(table=topic.table, request="T-1", erase_days=7))
    assert (made.erasures[0].rows, made.proven, made.complete) == (2, True, True), made.tasks
