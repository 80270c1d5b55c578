"""What a log has lost is taken back by choice, and what was read is the topic's only if it is still the same one."""

from unittest.mock import Mock

import pytest

from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicIds
from pipelines.loading.ledger import TableState, TopicIdentity
from pipelines.loading.truncation import check_incarnation, lost_offsets
from resources.choices import Choices
from resources.errors import TopicRecreated

A = BrokerPartition(None, 0)


@pytest.mark.parametrize(
    ("earliest", "latest", "lost"),
    [
        (10, 12, (OffsetRange(A, 12, 20),)),
        (12, 12, (OffsetRange(A, 12, 20),)),
        (13, 12, ()),  # fault B14
        (12, 20, ()),
    ],
)
def test_the_table_has_more_than_a_log_that_became_shorter_also_if_the_log_is_empty(
    earliest: int, latest: int, lost: tuple[OffsetRange, ...]
) -> None:  # fault B03
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    state, bounds = TableState(topic=topic, covered={A: (0, 20)}), {A: Bounds(earliest=earliest, latest=latest)}
    cluster = Mock(truncations=lambda *_: {})
    assert lost_offsets(cluster, state, bounds, Choices(on_truncated="rewind")) == (lost, {})


def test_rows_of_another_incarnation_are_refused() -> None:
    planned = Mock(ids=TopicIds(topic_id="one"))
    check_incarnation(Mock(topic_at_leaders=lambda *_: Mock(ids=TopicIds(topic_id="one"))), planned, ())
    with pytest.raises(TopicRecreated, match="was deleted and created again while it was read"):
        check_incarnation(Mock(topic_at_leaders=lambda *_: Mock(ids=TopicIds(topic_id="two"))), planned, ())
    with pytest.raises(TopicRecreated, match="was deleted while it was read"):
        check_incarnation(Mock(topic_at_leaders=lambda *_: None), planned, ())
