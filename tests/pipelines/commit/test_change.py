"""A change is not written on top of what another program or other rules have changed, and counts what it lost."""

from dataclasses import replace
from unittest.mock import Mock

import pyarrow as pa
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import CommitResult, LoadChange
from pipelines.commit.erasure import MissingChange
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.ledger.schema_ids import NO_SCHEMAS, SchemaIds, SchemaText
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_rules import NO_RULES, TableRules
from pipelines.table.table_store import TableSnapshot
from resources.errors import CommitRefused, TableNotProven

ONE, TWO = BrokerPartition(None, 0), BrokerPartition(None, 1)
STATE = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))


def test_a_load_is_not_written_on_top_of_a_change_by_another_program() -> None:
    snapshot = Mock(check_unchanged=Mock(side_effect=TableNotProven("changed")))
    with pytest.raises(TableNotProven):
        LoadChange(state=STATE, run="r").write(Mock(), snapshot)


def test_what_repairs_a_table_is_written_on_top_of_a_change_by_another_program() -> None:
    snapshot = replace(snapshot_of(), changed="rows were removed")
    change = MissingChange(state=STATE, run="r", removed=(), request="", missing={})
    table = Mock(entries=lambda _: [])
    change.write(table, snapshot)
    assert table.write.call_count == 1


@pytest.mark.parametrize("present", [TableRules(mask={"a": "*"}), NO_RULES])
def test_rows_of_other_rules_are_not_added_to_a_column(present: TableRules) -> None:
    change = LoadChange(state=STATE, run="r", rules=TableRules(hash={"a": "k1"}))
    entry, layout = Mock(state=Mock(rules=present)), Mock(values=pa.schema({"a": pa.string()}))
    with pytest.raises(CommitRefused, match="with other rules; run again"):
        change._rules_after(Mock(entry=entry, layout=layout))


def facts(start: int, stop: int, partition: BrokerPartition = ONE) -> SliceFacts:
    return SliceFacts(range=CommittedRange(offsets=OffsetRange(partition, start, stop)))


def snapshot_of(state: TableState = STATE, schemas: SchemaIds = NO_SCHEMAS) -> TableSnapshot:
    entry = LedgerEntry(commit="c", run="r", kind=CommitKind.LOAD, sequence=4, ranges=(), state=state, schemas=schemas)
    return TableSnapshot(version=4, entry=entry)


def written(change: LoadChange, snapshot: TableSnapshot) -> LedgerEntry:
    """The entry that a change writes on top of a snapshot."""
    table = Mock()
    change.write(table, snapshot)
    (_, entry, _, _), _ = table.write.call_args
    assert isinstance(entry, LedgerEntry)
    return entry


def texts(digest: str) -> SchemaIds:
    return SchemaIds(values=(9,), value_texts=(SchemaText(id=9, digest=digest, registry="main"),))


def test_rows_are_not_added_to_those_of_another_schema_with_the_same_id() -> None:  # fault A11
    change = LoadChange(state=STATE, run="r", schemas=texts("ours"))
    with pytest.raises(CommitRefused, match="another schema under the id 9; run again"):
        change.write(Mock(), snapshot_of(schemas=texts("theirs")))
    assert written(change, snapshot_of(schemas=texts("ours"))).schemas.values == (9,)


@pytest.mark.parametrize(
    ("kind", "condition"), [(CommitKind.LOAD, "new"), (CommitKind.REPLAY, "new"), (CommitKind.REDECODE, "old")]
)
def test_only_rows_of_records_follow_a_new_condition(kind: CommitKind, condition: str) -> None:  # fault P20
    state = replace(STATE, rules=TableRules(skip="old", hash={"a": "k1"}))
    change = LoadChange(state=state, run="r", kind=kind, rules=TableRules(skip="new", hash={"a": "k1"}))
    assert written(change, snapshot_of(state)).state.rules.skip == condition


@pytest.mark.parametrize(
    ("start", "stop", "partition", "epochs"),
    [
        (0, 10, ONE, {ONE: 1}),  # a backfill says nothing about the log at the cursor
        (20, 30, ONE, {ONE: 2}),
        (0, 10, TWO, {ONE: 1, TWO: 2}),
    ],
)
def test_the_leader_of_a_load_is_stored_where_the_cursor_moves(
    start: int, stop: int, partition: BrokerPartition, epochs: dict[BrokerPartition, int]
) -> None:  # fault B04
    state = replace(STATE, covered={ONE: (10, 20)}, epochs={ONE: 1})
    change = LoadChange(state=state, run="r", facts=(facts(start, stop, partition),), epochs={ONE: 2, TWO: 2})
    assert written(change, snapshot_of(state)).state.epochs == epochs


def test_the_next_step_begins_where_this_commit_or_the_other_run_ended() -> None:
    state = replace(STATE, covered={ONE: (10, 20)})
    change = LoadChange(state=replace(STATE, covered={ONE: (10, 25)}), run="r", facts=(facts(25, 30),))
    assert CommitResult(version=1, change=change).covered_after(state) == {ONE: (10, 30)}
    assert CommitResult(version=1, overtaken_by="s", covered={ONE: (10, 40)}).covered_after(state) == {ONE: (10, 40)}
    assert CommitResult(version=1).covered_after(state) == {ONE: (10, 20)}


def test_offsets_that_expired_are_not_counted_as_overtaken() -> None:
    expired = CommittedRange(offsets=OffsetRange(ONE, 0, 10), gaps={EXPIRED: 10})
    fetched = [SliceFacts(range=expired), SliceFacts(range=CommittedRange(offsets=OffsetRange(ONE, 10, 15)))]
    assert CommitResult(version=1).overtaken(fetched) == 5
