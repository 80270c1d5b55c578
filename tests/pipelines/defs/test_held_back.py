"""A transaction that never ends is a warning of its own check, and no reason for a load (fault N06)."""

import dagster as dg

from kafka_io.cluster.open_transactions import OpenTransaction
from kafka_io.model import BrokerPartition
from pipelines.defs.catalog.checks import STATUS_CHECKS
from pipelines.defs.sensors.schedules import has_work
from pipelines.status.status import LastLoad, PartitionStatus, TopicStatus
from resources.settings.schedules import CheckLimits

NOW_MS = 1_800_000_000_000


def held_back_topic(*, minutes: int, cursor: int = 10) -> TopicStatus:
    """A topic with a transaction that began some minutes ago at offset 10, and 1,000 offsets after it."""
    transaction = OpenTransaction(first_offset=10, began_ms=NOW_MS - 60_000 * minutes, producer_id=4711)
    partition = PartitionStatus(
        id=BrokerPartition(None, 3), earliest=0, latest=10, held_back=1000, transaction=transaction, cursor=cursor
    )
    return TopicStatus(
        cluster="main",
        topic="clicks",
        incarnation="7",
        table="/t",
        last_load=LastLoad(planned_ms=NOW_MS),
        partitions=(partition,),
    )


def test_the_check_warns_of_a_transaction_that_is_open_for_too_long() -> None:
    check = STATUS_CHECKS["open_transactions"]
    assert check(held_back_topic(minutes=14), CheckLimits(), NOW_MS) is None
    violation = check(held_back_topic(minutes=90), CheckLimits(), NOW_MS)
    assert violation is not None
    severity, sentence = violation
    assert severity is dg.AssetCheckSeverity.WARN
    assert "partition 3: a transaction of producer 4711 is open since offset 10, for 1 h 30 min" in sentence


def test_the_check_of_the_lag_counts_what_is_held_back() -> None:
    check = STATUS_CHECKS["lag"]
    assert check(held_back_topic(minutes=1), CheckLimits(lag=999), NOW_MS) is not None


def test_a_schedule_starts_no_run_for_records_that_cannot_be_loaded() -> None:
    assert not has_work(held_back_topic(minutes=90))
    assert has_work(held_back_topic(minutes=90, cursor=9))
