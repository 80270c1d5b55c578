"""The broker's rows are those that it still holds, and after an error each partition gets a new connection."""

from unittest.mock import Mock

import pytest

from kafka_io.errors import ConnectFailed
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.comparison.broker_rows import BrokerRows
from pipelines.ledger.committed_range import CommittedRange
from resources.errors import LogTruncated

A = BrokerPartition(None, 0)
RANGES = [CommittedRange(offsets=OffsetRange(A, start, start + 10), rows=10, bytes=10) for start in (0, 10)]


def rows(answer: object) -> BrokerRows:
    """Rows of a cluster that answers like this when it is asked for bounds."""
    return BrokerRows(Mock(bounds=lambda _, partitions: dict.fromkeys(partitions, answer)), Mock())


@pytest.mark.parametrize(("earliest", "latest", "expected"), [(0, 20, (0, 20)), (5, 30, (5, 20)), (25, 30, (20, 20))])
def test_expired_offsets_are_not_held(earliest: int, latest: int, expected: tuple[int, int]) -> None:
    assert rows(Bounds(earliest=earliest, latest=latest)).retained(RANGES) == OffsetRange(A, *expected)


def test_the_error_of_a_broker_is_raised() -> None:
    with pytest.raises(ConnectFailed, match="away"):
        rows(ConnectFailed("away")).retained(RANGES)


def test_a_log_that_ends_before_the_table_is_truncated() -> None:
    with pytest.raises(LogTruncated, match="the log ends at 19, but the table at 20"):
        rows(Bounds(earliest=0, latest=19)).retained(RANGES)


def test_dropped_readers_are_closed_and_opened_again() -> None:
    source, cluster = Mock(), Mock()
    cluster.source.return_value = source
    readers = [Mock(), Mock()]
    source.open.side_effect = readers
    for reader in readers:
        reader.read.return_value = ()
    with BrokerRows(cluster, Mock()) as broker_rows:
        for _ in range(2):
            assert list(broker_rows.batches(RANGES[0].offsets, "")) == []
        assert source.open.call_count == 1
        broker_rows.drop()
        readers[0].close.assert_called_once_with()
        assert list(broker_rows.batches(RANGES[0].offsets, "")) == []
        assert source.open.call_count == 2
        readers[1].close.assert_not_called()
    readers[1].close.assert_called_once_with()
