"""A topic is the one of its table unless its ids, or the user, say something else."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from kafka_io.model import Bounds, BrokerPartition
from pipelines.identity.divergence import Divergence
from pipelines.identity.identity import check_divergence, table_state, with_topic_id
from pipelines.ledger.ledger import TableState, TopicFindings, TopicIdentity
from resources.errors import ClusterChanged, RoutesChanged, TopicRecreated
from resources.settings.choices import Choices

A, B, C = (BrokerPartition(None, number) for number in range(3))
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7", cluster_id="one")
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABw"


def snapshot_of(topic: TopicIdentity = CLICKS) -> Mock:
    state = replace(TableState.new(topic, ()), covered={A: (0, 20)})
    return Mock(entry=Mock(state=state, sequence=4), rows=20)


@pytest.mark.parametrize(("stored", "shown"), [("one", "one"), ("", "one"), ("one", ""), ("", "")])
def test_a_cluster_id_that_one_side_does_not_know_contradicts_nothing(stored: str, shown: str) -> None:
    snapshot = snapshot_of(replace(CLICKS, cluster_id=stored))  # faults N05, N17
    assert table_state(snapshot, replace(CLICKS, cluster_id=shown)).findings.followed == {}


def test_the_table_of_another_route_is_not_loaded() -> None:
    orders = replace(CLICKS, name="clicks/orders")
    assert table_state(snapshot_of(orders), orders).covered == {A: (0, 20)}
    for stored, topic in ((orders, CLICKS), (CLICKS, orders)):
        with pytest.raises(RoutesChanged, match=f"this is the table {stored.name}: put it back"):
            table_state(snapshot_of(stored), topic)


def test_another_cluster_needs_a_choice() -> None:  # fault N17
    other = replace(CLICKS, cluster_id="two")
    with pytest.raises(ClusterChanged, match="holds a topic of the cluster one, but the settings lead to two"):
        table_state(snapshot_of(), other)
    state = table_state(snapshot_of(), other, choices=Choices(on_cluster_changed="adopt"))
    assert state.findings.followed == {"on_cluster_changed": "adopt"}


def test_a_topic_that_begins_again_has_a_name_that_no_incarnation_had_before() -> None:
    restart, snapshot = Choices(on_recreated="restart"), snapshot_of()
    assert table_state(snapshot, replace(CLICKS, incarnation="8"), choices=restart).topic.incarnation == "8"
    state, divergences = table_state(snapshot, CLICKS), {A: Divergence(offset=0, common=False)}
    with pytest.raises(TopicRecreated, match="none of the messages that were loaded from it"):
        check_divergence(snapshot, state, divergences, Choices())
    begun = check_divergence(snapshot, state, divergences, restart)  # fault P11
    assert (begun.topic.incarnation, begun.covered) == ("7+4", {})


def test_a_topic_id_is_learned_with_the_epochs_of_loaded_partitions_that_have_none() -> None:  # fault N05
    shown = TableState.new(replace(CLICKS, incarnation=TOPIC_ID), ())
    state = TableState(
        topic=CLICKS,
        covered={A: (0, 20), B: (0, 20), C: (0, 20)},
        epochs={A: 3},
        findings=TopicFindings(shown=shown),
    )
    bounds = {partition: Bounds(earliest=0, latest=30, epoch=epoch) for partition, epoch in ((A, 5), (B, 0), (C, -1))}
    learned = with_topic_id(state, {**bounds, BrokerPartition(None, 9): Bounds(earliest=0, latest=9, epoch=1)})
    assert (learned.ids.topic_id, learned.epochs) == (TOPIC_ID, {A: 3, B: 0})
    for findings in (TopicFindings(), TopicFindings(shown=TableState.new(CLICKS, ()))):
        unknown = replace(state, findings=findings)
        assert with_topic_id(unknown, bounds) == unknown
