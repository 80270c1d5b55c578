"""What an entry of the ledger and the state of a table say about a topic."""

import json
from unittest.mock import Mock

import pytest

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.coverage import begun_earlier
from pipelines.ledger.ledger import CommitKind, FormerRanges, LedgerEntry, TableState, TopicFindings, TopicIdentity
from pipelines.ledger.schema_ids import SchemaIds, SchemaText
from pipelines.ledger.slice_facts import NOTHING_DECODED, BadRecord, Observations, SliceFacts
from pipelines.ledger.table_rules import DROP, KEEP, TableRules
from resources.errors import EntryUnknown

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")


def test_offsets_of_a_cluster_keep_their_name_if_the_settings_call_it_otherwise() -> None:
    assert CLICKS.app_id(A) == "penstock/main/clicks/7/0"
    known = TopicIdentity(cluster="main", name="clicks", incarnation="7", cluster_id="one")
    assert known.app_id(A) == "penstock/one/clicks/7/0"


def test_a_table_of_a_route_has_its_own_name() -> None:
    cluster, topic = Mock(cluster_id=lambda: None), Mock(incarnation="7")
    cluster.name, topic.name = "main", "clicks"
    assert TopicIdentity.of(cluster, topic) == CLICKS
    own = TopicIdentity.of(cluster, topic, "clicks/orders")
    assert (own.name, own.kafka_topic) == ("clicks/orders", "clicks")


def test_a_partition_that_appeared_later_begins_at_0_unless_a_time_was_chosen() -> None:  # fault P01
    state = TableState(topic=CLICKS, covered={A: (3, 20)}, start_times={B: 5})
    assert [state.cursor(BrokerPartition(None, number)) for number in range(3)] == [20, None, 0]
    assert TableState(topic=CLICKS).cursor(A) is None
    assert TableState(topic=CLICKS, findings=TopicFindings(replaced="6")).cursor(A) == 0


def test_an_entry_with_a_field_of_a_newer_version_is_not_read() -> None:
    state = TableState(topic=CLICKS, covered={A: (0, 5)})
    entry = LedgerEntry(commit="c", run="r", kind=CommitKind.REWIND, sequence=1, ranges=(), state=state, target=3)
    assert LedgerEntry.from_json(entry.to_json()) == entry
    newer = json.dumps({**json.loads(entry.to_json()), "another": 1})
    with pytest.raises(EntryUnknown, match="unknown fields: another"):
        LedgerEntry.from_json(newer)


@pytest.mark.parametrize("paths", [(), ("a.parquet",), ("a.parquet", "b.parquet")], ids=len)
def test_a_range_is_read_as_it_was_written(paths: tuple[str, ...]) -> None:
    committed = CommittedRange(offsets=OffsetRange(A, 3, 9), rows=2, gaps={"compacted": 1, "erased": 3}, paths=paths)
    assert CommittedRange.from_dict(committed.as_dict()) == committed
    assert committed.as_dict()["path"] == (paths[0] if paths else None)
    assert committed.visible_gaps == {"compacted": 1}


def test_ranges_of_a_former_incarnation_with_an_unknown_field_are_not_read() -> None:
    former = FormerRanges(
        topic=CLICKS, covered={A: (0, 5)}, ranges=(CommittedRange(offsets=OffsetRange(A, 0, 5)),), written=()
    )
    fields = json.loads(json.dumps(former.as_dict()))
    assert FormerRanges.from_dict(fields) == former
    with pytest.raises(TypeError, match="unknown fields: another"):
        FormerRanges.from_dict({**fields, "another": 1})


def bad(offset: int) -> SliceFacts:
    observed = Observations(bad=1, bad_examples=(BadRecord(offset=offset, reason="cut"),))
    return SliceFacts(range=CommittedRange(offsets=OffsetRange(A, offset, offset + 5), rows=5), observed=observed)


def test_the_first_record_that_does_not_decode_is_named() -> None:
    counts = NOTHING_DECODED.plus([SliceFacts(range=CommittedRange(offsets=OffsetRange(A, 0, 5))), bad(5), bad(10)])
    assert (counts.rows, counts.bad, counts.first) == (10, 2, (A, BadRecord(offset=5, reason="cut")))
    assert counts.plus([bad(15)]).first == counts.first


def test_a_topic_is_not_known_to_be_the_same_before_somebody_looked() -> None:
    assert not TopicFindings().same_topic_id


def test_a_leader_with_a_lower_epoch_is_older_and_one_without_an_epoch_is_not() -> None:  # fault B02
    state = TableState(topic=CLICKS, epochs={A: 3, B: 3})
    for epoch, is_older in ((0, True), (2, True), (3, False), (4, False), (-1, False)):
        assert state.with_older_leader({A: Bounds(earliest=0, latest=9, epoch=epoch)}) == ([A] if is_older else [])


def test_only_commits_that_copy_rows_or_take_them_out_replace_rows() -> None:
    replacing = {
        kind
        for kind in CommitKind
        if LedgerEntry(
            commit="c", run="r", kind=kind, sequence=1, ranges=(), state=TableState(topic=CLICKS)
        ).replaces_rows
    }
    assert replacing == {CommitKind.REPLAY, CommitKind.CUT, CommitKind.ERASE, CommitKind.RETIRE}


@pytest.mark.parametrize(("end", "cursor", "before"), [(30, 5, 5), (8, 5, 3), (8, 8, 0), (8, 9, 0)])
def test_what_another_run_left_before_the_planned_start_is_loaded_too(end: int, cursor: int, before: int) -> None:
    planned = [OffsetRange(A, 10, 20), OffsetRange(A, 20, 30), OffsetRange(B, 10, 20)]
    assert list(begun_earlier(planned, {B: (0, 9)}, {A: (0, cursor), B: (0, 9)}, {A: end, B: end})) == [before]


def text(id_: int, digest: str, met_ms: int = 0) -> SchemaText:
    return SchemaText(id=id_, digest=digest, registry="main", met_ms=met_ms)


def test_texts_of_one_id_conflict_unless_the_planned_ones_continue_those_of_the_table() -> None:  # fault A11
    table = SchemaIds(value_texts=(text(1, "a"), text(2, "b")))
    for planned, conflict in (((1, "a"),), None), (((1, "a"), (1, "c")), None), (((1, "c"),), 1), (((3, "c"),), None):
        others = tuple(text(*pair) for pair in planned)
        assert table.conflict(SchemaIds(value_texts=others)) == conflict
        assert SchemaIds(key_texts=table.value_texts).conflict(SchemaIds(key_texts=others)) == conflict


def test_new_texts_are_added_once_with_the_time_at_which_they_are_met() -> None:
    table = SchemaIds(values=(1,), value_texts=(text(1, "a", 5), text(2, "b", 5)))
    planned = SchemaIds(values=(2, 1), value_texts=(text(2, "b", 5), text(1, "a", 5), text(1, "c"), text(3, "d", 7)))
    after = table.with_ids(planned, now_ms=9)
    assert after.values == (1, 2)
    assert after.value_texts == (*table.value_texts, text(1, "c", 9), text(3, "d", 7))


def test_rules_differ_where_values_would_have_two_meanings() -> None:
    before = TableRules(drop=("a",), mask={"b": "*"}, hash={"c": "k1"})
    planned = TableRules(drop=("b",), mask={"a": "*", "c": "*"}, hash={"d": "k1"})
    assert [before.meaning(path) for path in "abcd"] == [DROP, ("mask", "*"), ("hash", "k1"), None]
    assert list(before.conflicts(planned, lambda path: path != "d")) == ["c"]
    assert list(before.conflicts(planned, lambda _: True)) == ["c", "d"]
    assert list(before.conflicts(before, lambda _: True)) == []
    assert list(before.differences(planned)) == ["a", "b", "c", "d"]
    assert list(before.differences(before)) == []


@pytest.mark.parametrize(
    ("key", "planned", "conflicts"), [(KEEP, KEEP, False), (KEEP, DROP, False), (DROP, KEEP, False), ("k1", KEEP, True)]
)
def test_keys_of_two_meanings_conflict_unless_one_of_them_is_dropped(key: str, planned: str, conflicts: bool) -> None:
    assert bool(list(TableRules(key=key).conflicts(TableRules(key=planned), lambda _: True))) == conflicts
    assert list(TableRules(key=key).differences(TableRules(key=planned))) == ([] if key == planned else ["_kafka_key"])


def test_rules_are_stored_with_what_is_set_alone() -> None:
    assert TableRules(key=DROP, since=3).as_dict() == {"key": DROP, "since": 3}
    assert TableRules().as_dict() == {}


def test_a_secret_has_changed_if_its_check_is_another_one() -> None:
    before = TableRules(checks={"k1": "x", "k2": "y"})
    assert before.changed_secrets(TableRules(checks={"k1": "x", "k2": "z", "k3": "w"})) == ["k2"]
    assert before.changed_secrets(TableRules(checks={"k1": "x"})) == []


def test_a_condition_counts_from_the_commit_that_changed_it() -> None:
    before = TableRules(skip="a", skip_since=2)
    assert before.followed_by(TableRules(skip="a"), 5).skip_since == 2
    assert before.followed_by(TableRules(skip="b"), 5) == TableRules(skip="b", skip_since=5)
