"""What a log has lost is taken back by choice, and what was read is the topic's only if it is still the same one."""

from unittest.mock import Mock

import pytest

from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicIds
from pipelines.identity.divergence import Divergence
from pipelines.identity.truncation import LogComparison, check_incarnation, compare_logs, lost_offsets
from pipelines.ledger.ledger import TableState, TopicIdentity
from resources.errors import TopicRecreated
from resources.settings.choices import Choices

A = BrokerPartition(None, 0)
SAME = LogComparison(divergences={}, errors={}, all_same=True)


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
    assert lost_offsets(state, bounds, Choices(on_truncated="rewind"), SAME) == (lost, {})


@pytest.mark.parametrize("is_typed", [False, True])
def test_a_log_that_became_shorter_is_searched_although_a_cut_removed_its_last_message(*, is_typed: bool) -> None:
    """Otherwise a topic that was created again after the cut looks like one that was truncated (fault P11)."""
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="unknown")
    another = Divergence(offset=0, common=False)
    search = Mock(state=TableState(topic=topic, covered={A: (0, 20)}), run=Mock(return_value=another))
    search.has_bytes, search.with_expired.return_value = not is_typed, set()
    search.cluster.truncations.return_value = {}
    bounds = {A: Bounds(earliest=0, latest=12)}
    comparison = compare_logs(search, bounds, Choices(on_truncated="rewind"), loads_older=False, with_idle=False)
    assert comparison.divergences == ({} if is_typed else {A: another})


def test_rows_of_another_incarnation_are_refused() -> None:
    planned = Mock(ids=TopicIds(topic_id="one"))
    check_incarnation(Mock(topic_at_leaders=lambda *_: Mock(ids=TopicIds(topic_id="one"))), planned, ())
    with pytest.raises(TopicRecreated, match="was deleted and created again while it was read"):
        check_incarnation(Mock(topic_at_leaders=lambda *_: Mock(ids=TopicIds(topic_id="two"))), planned, ())
    with pytest.raises(TopicRecreated, match="was deleted while it was read"):
        check_incarnation(Mock(topic_at_leaders=lambda *_: None), planned, ())
