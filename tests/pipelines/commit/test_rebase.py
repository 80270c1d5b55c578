"""A change that was not the first is put on top of what other runs have committed, or is refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafka_io.model import BrokerPartition, OffsetRange, TopicIds
from pipelines.commit.commit import LoadChange, state_after
from pipelines.commit.replacement import CutChange
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicFindings, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_routes import TableRoutes
from pipelines.table.table_store import TableSnapshot
from resources.errors import CommitRefused

ONE, TWO = BrokerPartition(None, 0), BrokerPartition(None, 1)
TOPIC = TopicIdentity(cluster="main", name="clicks", incarnation="7")
STATE = TableState(topic=TOPIC, covered={ONE: (10, 20)}, epochs={ONE: 1})


def facts(start: int, stop: int, partition: BrokerPartition = ONE) -> SliceFacts:
    return SliceFacts(range=CommittedRange(offsets=OffsetRange(partition, start, stop)))


def newest(**state: Any) -> TableSnapshot:
    """A version that another run has committed, with this state."""
    left = replace(STATE, **state)
    entry = LedgerEntry(commit="c", run="other", kind=CommitKind.LOAD, sequence=2, ranges=(), state=left)
    return TableSnapshot(version=2, entry=entry)


def loading(
    *slices: SliceFacts, state: TableState = STATE, epochs: Mapping[BrokerPartition, int] = STATE.epochs
) -> LoadChange:
    return LoadChange(state=state, run="ours", facts=slices, epochs=epochs)


def left_of(change: LoadChange, version: TableSnapshot) -> list[str]:
    """The slices that are left of a change on top of a version."""
    rebased = change.rebased(version)
    assert rebased is not None
    return [str(part.offsets) for part in rebased.facts]


def test_a_slice_that_begins_where_the_other_run_ended_is_left() -> None:  # fault O03
    change = loading(facts(20, 30), facts(30, 40))
    assert left_of(change, newest(covered={ONE: (10, 30)})) == ["partition 0 [30, 40)"]
    assert change.rebased(newest(covered={ONE: (10, 25)})) is None
    older = loading(facts(0, 5), facts(5, 10))
    assert left_of(older, newest(covered={ONE: (5, 20)})) == ["partition 0 [0, 5)"]


@pytest.mark.parametrize(
    ("theirs", "ours", "refused"),
    [({ONE: 2}, {ONE: 1}, True), ({ONE: 2}, {ONE: 2}, False), ({ONE: 1}, {ONE: 2}, True), ({ONE: 1}, {ONE: 1}, False)],
)
def test_a_load_does_not_continue_from_a_cursor_that_moved_under_another_leader(
    theirs: dict[BrokerPartition, int], ours: dict[BrokerPartition, int], refused: bool
) -> None:  # fault B04
    change = loading(facts(20, 30), facts(30, 40), epochs=ours)
    moved = newest(covered={ONE: (10, 30)}, epochs=theirs)
    if refused:
        with pytest.raises(CommitRefused, match="partition 0 has another leader since"):
            change.rebased(moved)
    else:
        assert left_of(change, moved) == ["partition 0 [30, 40)"]


def test_another_leader_does_not_matter_where_the_cursor_stays() -> None:  # fault B04
    change = loading(facts(20, 30), epochs={ONE: 2})
    assert left_of(change, newest(covered={ONE: (10, 20), TWO: (0, 5)})) == ["partition 0 [20, 30)"]
    backfill = loading(facts(0, 10), epochs={ONE: 2})
    assert left_of(backfill, newest(covered={ONE: (10, 30)})) == ["partition 0 [0, 10)"]


def test_a_load_stays_as_it_is_on_top_of_a_version_without_entry() -> None:
    assert left_of(loading(facts(20, 30)), TableSnapshot(version=3, entry=None)) == ["partition 0 [20, 30)"]


def test_a_load_is_refused_by_a_table_that_holds_another_incarnation_now() -> None:  # fault B05
    other = newest(topic=replace(TOPIC, incarnation="8"))
    with pytest.raises(CommitRefused, match="the table holds incarnation 8 now"):
        loading(facts(20, 30)).rebased(other)
    with pytest.raises(CommitRefused, match="the table holds another incarnation now"):
        cutting().rebased(other)


def test_the_first_load_of_a_new_incarnation_lands_on_top_of_the_former_one() -> None:  # fault B05
    new = TableState(topic=replace(TOPIC, incarnation="8"), findings=TopicFindings(replaced="7"))
    assert left_of(loading(facts(0, 5), state=new), newest(covered={ONE: (10, 30)})) == ["partition 0 [0, 5)"]


def test_a_load_is_refused_where_another_run_has_loaded_with_other_routes() -> None:
    routes = TableRoutes(by="topic", names=(("a", "b"),), others="others")
    with pytest.raises(CommitRefused, match=r"run other committed first \(with other routes\)"):
        loading(facts(20, 30)).rebased(newest(routes=routes))
    assert left_of(loading(facts(20, 30), state=replace(STATE, routes=routes)), newest(routes=routes))


def cutting() -> CutChange:
    return CutChange(state=STATE, ranges=(OffsetRange(ONE, 15, 20),), run="ours")


def test_a_cut_is_refused_where_its_partition_was_loaded_from_another_leader() -> None:  # fault B04
    with pytest.raises(CommitRefused, match="partition 0 was loaded from another leader since"):
        cutting().rebased(newest(epochs={ONE: 2}))
    with pytest.raises(CommitRefused, match="the table holds another incarnation now"):
        cutting().rebased(TableSnapshot(version=3, entry=None))
    moved = newest(covered={ONE: (10, 20), TWO: (0, 5)}, epochs={ONE: 1, TWO: 4})
    assert cutting().rebased(moved).state.covered == {ONE: (10, 20), TWO: (0, 5)}


def adopting(**followed: str) -> TableState:
    """The state of a run whose user continues a table that has another topic id."""
    findings = TopicFindings(adopted=TopicIds(topic_id="a" * 22), followed=followed)
    return replace(STATE, ids=TopicIds(topic_id="b" * 22), epochs={ONE: 5}, findings=findings)


def after(state: TableState, topic_id: str) -> TableState:
    """The state on top of an entry with this topic id, which another run left."""
    entry = newest(ids=TopicIds(topic_id=topic_id), covered={ONE: (10, 30)}, epochs={ONE: 3}).entry
    assert entry is not None
    return state_after(entry, state)


def test_a_run_that_adopts_a_table_keeps_the_ids_of_the_cluster() -> None:
    state = after(adopting(), "a" * 22)
    assert (state.covered, state.epochs) == ({ONE: (10, 30)}, {ONE: 3})
    # It adopts a topic that was created again: nothing that the table knows of the former log counts.
    recreated = after(adopting(on_recreated="adopt"), "a" * 22)
    assert (recreated.ids.topic_id, recreated.covered, recreated.epochs) == ("b" * 22, {ONE: (10, 30)}, {ONE: 5})


def test_a_run_continues_what_another_one_has_adopted() -> None:
    state = after(adopting(on_recreated="adopt"), "b" * 22)
    assert (state.ids.topic_id, state.covered, state.epochs) == ("b" * 22, {ONE: (10, 30)}, {ONE: 3})


@pytest.mark.parametrize(
    "state", [replace(STATE, ids=TopicIds(topic_id="b" * 22)), adopting()], ids=["plain", "adopts"]
)
def test_a_run_is_refused_where_another_one_has_loaded_another_topic(state: TableState) -> None:  # fault B05
    with pytest.raises(CommitRefused, match="run other loaded another topic"):
        after(state, "c" * 22)
