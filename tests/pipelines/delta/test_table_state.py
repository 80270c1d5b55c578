"""The state of a table, and the reasons for which a load refuses it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from deltalake import CommitProperties, Transaction

from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicIds
from pipelines.commit.commit import LoadChange, commit
from pipelines.commit.replacement import CutChange
from pipelines.delta.writes import transactions
from pipelines.identity.identity import check_epochs, other_log, table_state, with_topic_id
from pipelines.ledger.ledger import RecordedChoice, TableState, TopicFindings, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.plan.plan import Plan
from resources.errors import ClusterChanged, CommitRefused, CursorMismatch, TableForeign, TopicRecreated
from resources.settings.choices import Choices

if TYPE_CHECKING:
    from tests.small_table import SmallTable

A = BrokerPartition(0, 0)
OTHER = TopicIdentity(cluster="main", name="clicks", incarnation="8")


def test_another_incarnation_is_refused(small: "SmallTable") -> None:  # faults B05, B06
    small.commit(small.write(0, 50))
    sentence = r"creation zxid 8 instead of 7.*keeps the table's 5 rows.*adopt"
    with pytest.raises(TopicRecreated, match=sentence):
        table_state(small.table.snapshot(), OTHER)


def test_another_incarnation_starts_with_empty_coverage_by_choice(small: "SmallTable") -> None:  # faults B05, B06
    small.commit(small.write(0, 50))
    state = table_state(small.table.snapshot(), OTHER, choices=Choices(on_recreated="restart"))
    assert (state.topic, state.ids, state.covered) == (OTHER, TopicIds(created_zxid="8"), {})
    assert state.findings.replaced == "7"


def test_another_incarnation_continues_at_the_cursors_by_choice(small: "SmallTable") -> None:  # fault N05
    small.commit(small.write(0, 50))
    state = table_state(small.table.snapshot(), OTHER, choices=Choices(on_recreated="adopt"))
    assert (state.topic, state.ids.created_zxid, state.covered) == (small.topic, "8", {A: (0, 50)})


def seen(*incarnations: str, cluster_id: str = "") -> tuple[TopicIdentity, tuple[str, ...]]:
    """The topic as a cluster shows it, and the other names of its incarnation."""
    first, *aliases = incarnations
    return TopicIdentity(cluster="main", name="clicks", incarnation=first, cluster_id=cluster_id), tuple(aliases)


ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAABw", "AAAAAAAAAAAAAAAAAAAACQ"


def load_as(small: "SmallTable", *views: list[str]) -> TableState:
    """Load 50 bytes for each view of the topic; returns the state before the last load."""
    small.topic = seen(*views[0])[0]
    for number, view in enumerate(views):
        state = table_state(small.table.snapshot(), *seen(*view, cluster_id="one" if number else ""))
        facts = small.write(50 * number, 50 * number + 50)
        state = with_topic_id(state, {A: Bounds(earliest=0, latest=50 * number)})
        commit(small.table, small.table.snapshot(), LoadChange(state=state, facts=(facts,), run="run"))
    return state


@pytest.mark.parametrize(
    "views",
    [
        pytest.param([["7"], [ID, "7"], [ID], [ID, "7"]], id="zookeeper, upgraded, bootstrap, zookeeper again"),
        pytest.param([["unknown"], ["7"], ["unknown"], [ID]], id="bootstrap, zookeeper, bootstrap, upgraded"),
        pytest.param([["7"], ["unknown"], ["7"]], id="an address is exchanged and exchanged back"),
        pytest.param([[ID, "7"], [ID, "31"]], id="ZooKeeper was rebuilt"),
    ],
)
def test_a_table_recognises_its_topic_by_any_id_that_it_has_learned(
    small: "SmallTable", views: list[list[str]]
) -> None:  # faults N05, N17
    assert load_as(small, *views).topic == small.topic
    entry = small.table.snapshot().entry
    assert entry is not None
    assert entry.covered == {A: (0, 50 * len(views))}
    assert entry.state.ids.cluster_id == "one"


@pytest.mark.parametrize(
    ("loaded", "shown"),
    [
        pytest.param([[ID, "7"]], [OTHER_ID], id="another topic id"),
        pytest.param([["7"], [ID, "7"]], [OTHER_ID], id="another id than the learned one"),
        pytest.param([["unknown"], ["7"]], ["8"], id="another zxid than the learned one"),
        pytest.param([[ID, "7"]], [OTHER_ID, "7"], id="the topic id is stronger than the zxid"),
    ],
)
def test_an_id_that_contradicts_a_learned_one_belongs_to_another_incarnation(
    small: "SmallTable", loaded: list[list[str]], shown: list[str]
) -> None:  # faults B05, B06, N05
    load_as(small, *loaded)
    with pytest.raises(TopicRecreated, match=" instead of "):
        table_state(small.table.snapshot(), *seen(*shown))


def with_epoch(small: "SmallTable", epoch: int, topic: TopicIdentity) -> TableState:
    """The table after a load under a leader epoch, for a load of `topic`."""
    small.topic = topic
    state = table_state(small.table.snapshot(), topic)
    change = LoadChange(state=state, facts=(small.write(0, 50),), epochs={A: epoch}, run="run")
    commit(small.table, small.table.snapshot(), change)
    return table_state(small.table.snapshot(), topic)


def test_a_leader_epoch_below_the_stored_one_belongs_to_another_log(small: "SmallTable") -> None:  # fault P08
    state = with_epoch(small, 5, seen("unknown")[0])
    bounds = {A: Bounds(earliest=0, latest=90, epoch=0)}
    snapshot = small.table.snapshot()
    with pytest.raises(TopicRecreated, match="leader epoch 0 instead of 5 in partition 0-0"):
        check_epochs(snapshot, state, bounds, Choices())
    restarted = check_epochs(snapshot, state, bounds, Choices(on_recreated="restart"))
    assert (restarted.topic.incarnation, restarted.covered) == ("unknown+1", {})


def test_a_deposed_leader_of_the_same_topic_id_is_not_another_log(small: "SmallTable") -> None:  # fault P08
    state = with_epoch(small, 5, seen(ID)[0])
    bounds = {A: Bounds(earliest=0, latest=90, epoch=4)}
    assert check_epochs(small.table.snapshot(), state, bounds, Choices()) == state


def test_a_topic_of_another_cluster_continues_by_choice(small: "SmallTable") -> None:  # fault N17
    small.topic = seen("7", cluster_id="one")[0]
    small.commit(small.write(0, 50))
    choices = Choices(on_cluster_changed="adopt")
    topic, _ = seen("7", cluster_id="two")
    state = table_state(small.table.snapshot(), topic, choices=choices)
    commit(small.table, small.table.snapshot(), LoadChange(state=state, run="run"))
    adopted = table_state(small.table.snapshot(), topic)
    assert (adopted.topic, adopted.covered, adopted.ids.cluster_id) == (small.topic, {A: (0, 50)}, "two")


def test_the_choice_of_another_cluster_is_recorded_when_all_rows_were_taken_back() -> None:  # fault N17
    followed = {"on_cluster_changed": "adopt"}
    adopted = TableState.new(OTHER)
    state = replace(adopted, findings=TopicFindings(adopted=adopted.ids, followed=followed))
    step = Plan(slices=(OffsetRange(A, 0, 17),))
    assert list(step.choices(state)) == [RecordedChoice.of("on_cluster_changed", "adopt", OffsetRange(A, 0, 0))]


def adopting(small: "SmallTable", *facts: SliceFacts) -> LoadChange:
    """The change of a load that continues with another incarnation at the cursors, by choice."""
    state = table_state(small.table.snapshot(), OTHER, choices=Choices(on_recreated="adopt"))
    return LoadChange(state=state, facts=facts, run="adopting")


def test_a_load_of_the_former_topic_is_refused_after_another_run_adopted_the_new_one(
    small: "SmallTable",
) -> None:  # fault N05
    small.commit(small.write(0, 50))
    snapshot = small.table.snapshot()
    commit(small.table, snapshot, adopting(small))
    with pytest.raises(CommitRefused, match=r"run adopting loaded another topic \(creation zxid 8 instead of 7\)"):
        small.commit(small.write(50, 80), snapshot=snapshot)
    assert small.rows() == 5


def test_a_topic_is_adopted_at_the_cursors_that_another_run_has_moved_meanwhile(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    snapshot, change = small.table.snapshot(), adopting(small)
    small.commit(small.write(50, 80))
    commit(small.table, snapshot, change, sleep=lambda _: None)
    state = table_state(small.table.snapshot(), OTHER)
    assert (state.ids.created_zxid, state.covered) == ("8", {A: (0, 80)})


def test_a_topic_that_two_runs_adopt_is_adopted_once(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    snapshot, changes = small.table.snapshot(), (adopting(small), adopting(small))
    first, second = (commit(small.table, snapshot, change, sleep=lambda _: None) for change in changes)
    assert (first.overtaken_by, second.overtaken_by) == (None, "adopting")
    assert small.table.snapshot().version == first.version == 2


def restart_with_same_ids(small: "SmallTable") -> None:
    """Begin another log of the topic in the table. Its ids do not show that it is another one."""
    snapshot = small.table.snapshot()
    state = other_log(snapshot, table_state(snapshot, small.topic), "other", Choices(on_recreated="restart"))
    commit(small.table, snapshot, LoadChange(state=state, facts=(small.write(0, 20),), run="restarting"))


def test_changes_to_a_log_are_refused_after_another_run_restarted_the_table_with_the_next_one(
    small: "SmallTable",
) -> None:  # fault P11
    small.commit(small.write(0, 50))
    snapshot = small.table.snapshot()
    cut = CutChange(state=table_state(snapshot, small.topic), ranges=(OffsetRange(A, 20, 50),), run="run")
    restart_with_same_ids(small)
    with pytest.raises(CommitRefused, match="the table holds another incarnation now"):
        commit(small.table, snapshot, cut)
    with pytest.raises(CommitRefused, match=r"the table holds incarnation 7\+1 now"):
        small.commit(small.write(50, 80), snapshot=snapshot)
    assert small.rows() == 7


def test_a_table_is_restarted_on_top_of_what_another_run_has_loaded_of_the_former_topic(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    snapshot = small.table.snapshot()
    restarted = table_state(snapshot, OTHER, choices=Choices(on_recreated="restart"))
    change = LoadChange(state=restarted, facts=(small.write(0, 20),), run="restarting")
    small.commit(small.write(50, 80))
    commit(small.table, snapshot, change, sleep=lambda _: None)
    state = table_state(small.table.snapshot(), OTHER)
    assert (state.topic, state.covered, small.rows()) == (OTHER, {A: (0, 20)}, 10)


def test_a_topic_that_was_given_an_id_keeps_its_first_incarnation(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    upgraded = TopicIdentity(cluster="main", name="clicks", incarnation="AAAAAAAAAAAAAAAAAAAABw", cluster_id="new")
    result = table_state(small.table.snapshot(), upgraded, aliases=("7",))
    assert (result.topic, result.covered) == (small.topic, {A: (0, 50)})


def test_a_topic_of_another_cluster_is_refused(small: "SmallTable") -> None:
    small.topic = TopicIdentity(cluster="main", name="clicks", incarnation="7", cluster_id="one")
    small.commit(small.write(0, 50))
    with pytest.raises(ClusterChanged, match="cluster one, but the settings lead to two"):
        table_state(
            small.table.snapshot(), TopicIdentity(cluster="main", name="clicks", incarnation="7", cluster_id="two")
        )


@pytest.mark.parametrize("loaded_again", [False, True])
def test_a_restored_table_whose_cursor_stayed_ahead_is_refused(
    small: "SmallTable", loaded_again: bool
) -> None:  # fault L14
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80))
    small.handle().restore(1)
    if loaded_again:
        small.handle().optimize.compact()
    with pytest.raises(CursorMismatch, match=r"restored version 1 .* `penstock rewind clicks --version 1`"):
        small.covered()


def test_a_cursor_that_another_writer_moved_is_refused(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    properties = CommitProperties(app_transactions=[Transaction("penstock/sequence", 9)])
    small.handle().create_write_transaction(
        [], mode="append", schema=small.handle().schema(), commit_properties=properties
    )
    with pytest.raises(CursorMismatch, match="number 1, but the table's cursors belong to number 9"):
        small.covered()


def test_a_table_of_somebody_else_is_refused(small: "SmallTable") -> None:  # fault L12
    properties = CommitProperties(app_transactions=[Transaction("theirs", 1)])
    small.handle().create_write_transaction(
        [], mode="append", schema=small.handle().schema(), commit_properties=properties
    )
    with pytest.raises(TableForeign, match="did not load"):
        small.covered()


def test_a_table_whose_cursors_expire_is_refused(small: "SmallTable") -> None:  # fault L15
    small.handle().alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 1 days"})
    with pytest.raises(TableForeign, match="setTransactionRetentionDuration"):
        small.covered()


def test_a_new_incarnation_sets_its_cursors_also_where_the_former_one_ended(small: "SmallTable") -> None:  # fault B05
    small.commit(small.write(0, 50), small.write(0, 20, partition=1))
    snapshot = small.table.snapshot()
    assert snapshot.entry is not None
    same = replace(snapshot.entry, sequence=2)
    assert transactions(snapshot, same) == [("penstock/sequence", 2)]
    other = replace(same, state=replace(same.state, topic=OTHER))
    partitions = {A: 50, BrokerPartition(0, 1): 20}
    assert transactions(snapshot, other) == [
        ("penstock/sequence", 2),
        *((OTHER.app_id(partition), cursor) for partition, cursor in partitions.items()),
    ]
