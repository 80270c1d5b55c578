"""An update may take a short way only if all rows come after those that were there."""

from typing import Any

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.increments.difference import LedgerDifference, LoadedSpan
from pipelines.state_tables.update import only_appends

PARTITION, OTHER = BrokerPartition(None, 0), BrokerPartition(None, 1)


def span(start: int, stop: int, partition: BrokerPartition = PARTITION) -> tuple[LoadedSpan, ...]:
    return (LoadedSpan(OffsetRange(partition, start, stop), (1,)),)


@pytest.mark.parametrize(
    ("changes", "appends"),
    [
        ({}, True),
        ({"new": span(50, 60)}, True),
        ({"new": span(0, 60, OTHER)}, True),
        ({"new": span(0, 10)}, False),
        ({"new": span(49, 60)}, False),
        # Each of these alone, also if another one usually comes with it.
        ({"replaced": span(10, 20)}, False),
        ({"withdrawn": span(10, 20)}, False),
        ({"taken_back": span(40, 50)}, False),
    ],
)
def test_only_rows_after_the_covered_ones_are_appended(changes: dict[str, Any], appends: bool) -> None:
    assert only_appends(LedgerDifference(**changes), {PARTITION: (10, 50)}) == appends
