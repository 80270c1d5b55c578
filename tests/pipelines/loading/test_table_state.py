"""The state of a table, and the reasons for which a load refuses it."""

from typing import TYPE_CHECKING

import pytest
from deltalake import CommitProperties, Transaction

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import TableState, TopicIdentity
from pipelines.loading.table_log import table_state
from resources.errors import ClusterChanged, CursorMismatch, TableForeign, TopicRecreated

if TYPE_CHECKING:
    from tests.small_table import SmallTable

A = BrokerPartition(0, 0)
OTHER = TopicIdentity(cluster="main", name="clicks", incarnation="8")


def test_another_incarnation_is_refused(small: "SmallTable") -> None:  # faults B05, B06
    small.commit(small.write(0, 50))
    with pytest.raises(TopicRecreated, match=r"incarnation 7 .* has 8; on_recreated"):
        table_state(small.table.snapshot(), OTHER)


def test_another_incarnation_starts_with_empty_coverage_by_choice(small: "SmallTable") -> None:  # faults B05, B06
    small.commit(small.write(0, 50))
    assert table_state(small.table.snapshot(), OTHER, restart=True) == TableState(topic=OTHER, replaced="7")


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


def test_a_table_of_somebody_else_is_refused(small: "SmallTable") -> None:
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
