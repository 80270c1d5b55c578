"""A load says which transactions hold back records for too long (fault N06)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_io.records.build import Record, record_batch
from kafka_io.records.layout import TRANSACTIONAL
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.records import holding
from tests.pipelines.load.test_run_target import load

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def with_transaction(*, minutes: float) -> Log:
    """Five records, and a transaction that began so many minutes ago and is still open."""
    log, began = holding(0, 5), NOW - timedelta(minutes=minutes)
    record = Record(offset=5, value=b"open", timestamp=int(began.timestamp() * 1000))
    log.entries.append((5, record_batch([record], producer=(9, 0, 0), attributes=TRANSACTIONAL)))
    log.end, log.stable = 6, 5
    return log


@pytest.mark.parametrize(("minutes", "hangs"), [(14, False), (90, True)])
def test_a_load_warns_of_a_transaction_that_is_open_for_too_long(minutes: float, hangs: bool, tmp_path: Path) -> None:
    with FakeCluster(logs={0: with_transaction(minutes=minutes), 1: holding(0, 5)}) as fake:
        result = load(fake, tmp_path, now=lambda: NOW)
    assert (result.error, result.rows, result.lag) == (None, 10, 1)
    sentence = (
        "partition 0: a transaction of an unknown producer is open since offset 5, for 1 h 30 min, and holds back 1 "
        "offsets; kafka-transactions.sh --bootstrap-server ADDRESS abort --topic clicks --partition 0 --start-offset 5 "
        "ends it"
    )
    assert result.warnings == ((sentence,) if hangs else ())
