"""A change is not written on top of what another program or other rules have changed, and counts what it lost."""

from unittest.mock import Mock

import pyarrow as pa
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import CommitResult, LoadChange
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.ledger.table_rules import NO_RULES, TableRules
from resources.errors import CommitRefused, TableNotProven

ONE = BrokerPartition(None, 0)
STATE = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))


def test_a_load_is_not_written_on_top_of_a_change_by_another_program() -> None:
    snapshot = Mock(check_unchanged=Mock(side_effect=TableNotProven("changed")))
    with pytest.raises(TableNotProven):
        LoadChange(state=STATE, run="r").write(Mock(), snapshot)


@pytest.mark.parametrize("present", [TableRules(mask={"a": "*"}), NO_RULES])
def test_rows_of_other_rules_are_not_added_to_a_column(present: TableRules) -> None:
    change = LoadChange(state=STATE, run="r", rules=TableRules(hash={"a": "k1"}))
    entry, layout = Mock(state=Mock(rules=present)), Mock(values=pa.schema({"a": pa.string()}))
    with pytest.raises(CommitRefused, match="with other rules; run again"):
        change._rules_after(Mock(entry=entry, layout=layout))


def test_offsets_that_expired_are_not_counted_as_overtaken() -> None:
    expired = CommittedRange(offsets=OffsetRange(ONE, 0, 10), gaps={EXPIRED: 10})
    fetched = [SliceFacts(range=expired), SliceFacts(range=CommittedRange(offsets=OffsetRange(ONE, 10, 15)))]
    assert CommitResult(version=1).overtaken(fetched) == 5
