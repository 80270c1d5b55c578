"""The computation of lag, lateness and time left, at its limits and with unknown values."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kafka_io.cluster.open_transactions import OpenTransaction
from kafka_io.cluster.retention import FOREVER
from kafka_io.model import BrokerPartition
from pipelines.ledger.failure import SliceFailure
from pipelines.status.status import (
    LastLoad,
    PartitionStatus,
    RetentionPeriod,
    RetentionSource,
    TopicState,
    TopicStatus,
)
from resources.printed import printed

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY = RetentionPeriod(ms=24 * HOUR_MS, by=RetentionSource.BROKERS)


def part(
    earliest: int | None, latest: int | None, cursor: int | None, *, age_h: float | None = None, left_h: float = 0
) -> PartitionStatus:
    """A partition. Its oldest record without a row is `age_h` old and expires in `left_h`."""
    known = age_h is not None
    return PartitionStatus(
        id=BrokerPartition(None, 0),
        earliest=earliest,
        latest=latest,
        cursor=cursor,
        oldest_ms=NOW_MS - int((age_h or 0) * HOUR_MS) if known else None,
        expires_ms=NOW_MS + int(left_h * HOUR_MS) if known else None,
    )


LOADED = part(0, 10, 10)


LOAD = LastLoad(
    planned_ms=NOW_MS - 60_000, committed_ms=NOW_MS - 57_500, rows=9, bytes=90, files=1, gaps={"expired": 2}
)


def topic(*parts: PartitionStatus, **more: Any) -> TopicStatus:
    fields: dict[str, Any] = {"incarnation": "7", "version": 3, "last_load": LOAD, "kept": DAY, **more}
    return TopicStatus(cluster="main", topic="clicks", table="/lake/main/clicks", partitions=parts, **fields)


@pytest.mark.parametrize(
    ("earliest", "latest", "cursor", "start", "lag", "lost"),
    [
        (0, 10, None, 0, 10, 0),
        (3, 10, None, 3, 7, 0),
        (0, 10, 4, 4, 6, 0),
        (0, 10, 10, 10, 0, 0),
        (4, 10, 4, 4, 6, 0),
        (5, 10, 4, 5, 5, 1),  # fault B07
        (10, 10, 4, 10, 0, 6),
        (0, 10, 12, 12, 0, 0),
        (None, None, 4, None, None, 0),
        (None, None, None, None, None, 0),
    ],
)
def test_lag_and_lost_count_offsets_of_a_partition(
    earliest: int | None, latest: int | None, cursor: int | None, start: int | None, lag: int | None, lost: int
) -> None:
    status = part(earliest, latest, cursor)
    assert (status.next, status.lag, status.lost) == (start, lag, lost)


def test_the_lag_of_a_topic_is_known_if_that_of_all_partitions_is() -> None:
    assert topic(part(0, 10, 4), part(0, 5, None)).lag == 11
    assert topic(part(0, 10, 4), part(None, None, 4)).lag is None
    assert topic().lag is None


def test_the_record_that_expires_first_counts() -> None:
    status = topic(part(0, 10, 4, age_h=2, left_h=22), part(0, 10, 4, age_h=5, left_h=19), LOADED)
    assert (status.late_s(NOW_MS), status.left_s(NOW_MS)) == (5 * 3600, 19 * 3600)
    assert status.left_share(NOW_MS) == 19 / 24


def test_a_loaded_topic_is_not_late_and_loses_nothing() -> None:
    assert (topic(LOADED).late_s(NOW_MS), topic(LOADED).left_s(NOW_MS), topic(LOADED).left_share(NOW_MS)) == (
        0.0,
        None,
        None,
    )


def test_without_record_times_the_lateness_is_unknown() -> None:
    status = topic(part(0, 10, 4))
    assert (status.late_s(NOW_MS), status.left_s(NOW_MS), status.state(NOW_MS)) == (None, None, TopicState.BEHIND)


def test_a_record_from_the_future_is_not_late_and_lives_longer() -> None:
    status = topic(part(0, 10, 4, age_h=-48, left_h=72))
    assert (status.late_s(NOW_MS), status.left_s(NOW_MS), status.left_share(NOW_MS)) == (0, 72 * 3600, 1.0)
    assert status.state(NOW_MS) is TopicState.BEHIND


def test_times_outside_the_calendar_are_computed_like_all_others() -> None:
    absurd = PartitionStatus(
        id=BrokerPartition(None, 0), earliest=0, latest=1, cursor=None, oldest_ms=2**62, expires_ms=2**62 + 1
    )
    assert topic(absurd).left_s(NOW_MS) == (2**62 + 1 - NOW_MS) / 1000
    assert json.dumps(printed(topic(absurd).result(NOW_MS)))


def test_the_values_depend_on_the_time() -> None:
    status = topic(part(0, 10, 4, age_h=2, left_h=22))
    later = NOW_MS + 23 * HOUR_MS
    assert (status.late_s(later), status.left_s(later), status.left_share(later)) == (25 * 3600, -3600, 0.0)
    assert (status.state(NOW_MS), status.state(later)) == (TopicState.BEHIND, TopicState.LOSING)


@pytest.mark.parametrize(
    ("left_h", "state"),
    [(24, "behind"), (6, "behind"), (5.999, "at risk"), (0.001, "at risk"), (0, "losing"), (-1, "losing")],
)
def test_at_risk_begins_below_a_quarter_of_the_retention_and_losing_at_zero(left_h: float, state: str) -> None:
    assert topic(part(0, 10, 4, age_h=24 - left_h, left_h=left_h)).state(NOW_MS) == state


def test_an_estimate_never_gives_the_state_losing() -> None:
    kept = RetentionPeriod(ms=24 * HOUR_MS, by=RetentionSource.ESTIMATE)
    assert topic(part(5, 10, 5, age_h=24), kept=kept).state(NOW_MS) is TopicState.AT_RISK


def test_records_that_are_kept_for_no_time_at_all_are_being_lost() -> None:
    kept = RetentionPeriod(ms=0, by=RetentionSource.BROKERS)
    assert topic(part(0, 10, 4, age_h=1, left_h=-1), kept=kept).state(NOW_MS) is TopicState.LOSING


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (topic(LOADED), TopicState.LOADED),
        (topic(part(0, 10, 4)), TopicState.BEHIND),
        (topic(part(None, None, 4)), TopicState.BEHIND),
        (topic(part(0, 10, None), version=None, last_load=None), TopicState.NEW),
        (topic(part(5, 10, 4)), TopicState.LOSING),
        (topic(part(0, 10, 4), failure=SliceFailure(kind="LogTorn", reason="no")), TopicState.ERROR),
        (topic(part(5, 10, 4), failure=SliceFailure(kind="TopicRecreated", reason="no")), TopicState.ERROR),
        (topic(part(None, None, 4), incarnation=None), TopicState.GONE),
    ],
)
def test_the_state_of_a_topic(status: TopicStatus, state: TopicState) -> None:
    assert status.state(NOW_MS) is state


def held_back_partition(*, began_h: float | None, cursor: int = 10, producer_id: int | None = 4711) -> PartitionStatus:
    """A partition with a transaction that began some hours ago at offset 10, and 1,000 offsets after it."""
    began_ms = None if began_h is None else NOW_MS - int(began_h * HOUR_MS)
    transaction = OpenTransaction(first_offset=10, began_ms=began_ms, producer_id=producer_id)
    return replace(part(0, 10, cursor), held_back=1000, transaction=transaction)


def test_the_lag_counts_what_an_open_transaction_holds_back() -> None:  # fault N06
    status = topic(held_back_partition(began_h=0), held_back_partition(began_h=0, cursor=4))
    assert (status.lag, status.loadable) == (2006, 6)
    assert [partition.lag for partition in status.partitions] == [1000, 1006]


@pytest.mark.parametrize(
    ("began_h", "cursor", "state"),
    [(0.2, 10, "behind"), (0.26, 10, "held back"), (48, 4, "held back"), (None, 10, "held back")],
)
def test_a_topic_is_held_back_if_a_transaction_is_open_for_too_long(
    began_h: float | None, cursor: int, state: str
) -> None:  # fault N06
    assert topic(held_back_partition(began_h=began_h, cursor=cursor)).state(NOW_MS) == state


@pytest.mark.parametrize(
    ("began_h", "producer_id", "sentence"),
    [
        (30, 4711, "partition 0: a transaction of producer 4711 is open since offset 10, for 1 d 6 h, and holds"),
        (None, None, "partition 0: a transaction of an unknown producer is open since offset 10, for an unknown time"),
    ],
)
def test_the_warning_of_a_hanging_transaction_names_the_command_that_ends_it(
    began_h: float | None, producer_id: int | None, sentence: str
) -> None:  # fault N06
    status = topic(LOADED, held_back_partition(began_h=began_h, producer_id=producer_id), warnings=("mind",))
    mind, warning = printed(status.result(NOW_MS))["warnings"]
    assert (mind, sentence in warning, "holds back 1,000 offsets" in warning) == ("mind", True, True)
    assert (
        "kafka-transactions.sh --bootstrap-server ADDRESS abort --topic clicks --partition 0 --start-offset 10"
        in warning
    )
    assert json.dumps(printed(status.result(NOW_MS)))


def test_the_most_urgent_comes_first() -> None:
    in_order = [
        topic(part(5, 10, 4, age_h=1, left_h=23)),
        topic(part(0, 10, 4), failure=SliceFailure(kind="LogTorn", reason="no")),
        topic(part(0, 10, 4, age_h=22, left_h=2)),
        topic(part(0, 10, 4, age_h=20, left_h=4)),
        topic(held_back_partition(began_h=1)),
        topic(part(0, 10, 4, age_h=2, left_h=22)),
        topic(part(0, 99, 4)),
        topic(part(0, 10, 4)),
        topic(part(0, 10, None), last_load=None),
        topic(part(None, None, 4), incarnation=None),
        topic(LOADED),
    ]
    mixed = [*in_order[5:], *in_order[:5]]
    assert sorted(mixed, key=lambda status: status.urgency(NOW_MS)) == in_order


def test_records_that_do_not_expire_have_no_limit() -> None:
    assert (
        RetentionPeriod(ms=FOREVER, by=RetentionSource.BROKERS).limit_ms,
        RetentionPeriod(ms=None, by=RetentionSource.NOBODY).limit_ms,
        DAY.limit_ms,
    ) == (
        None,
        None,
        24 * HOUR_MS,
    )


def test_the_json_has_all_fields() -> None:
    fields = printed(topic(part(2, 10, 4, age_h=1, left_h=23), warnings=("mind",)).result(NOW_MS))
    assert json.loads(json.dumps(fields)) == {
        "cluster": "main",
        "topic": "clicks",
        "incarnation": "7",
        "has_id": True,
        "table": "/lake/main/clicks",
        "version": 3,
        "loaded_at_ms": NOW_MS - 60_000,
        "last_load": {
            "planned_ms": NOW_MS - 60_000,
            "committed_ms": NOW_MS - 57_500,
            "rows": 9,
            "bytes": 90,
            "files": 1,
            "gaps": {"expired": 2},
            "seconds": 2.5,
        },
        "rows": None,
        "bytes": None,
        "files": None,
        "errors": [],
        "lag": 6,
        "lost": 0,
        "bad_records": 0,
        "valid_through_ms": None,
        "state": "behind",
        "late_s": 3600.0,
        "left_s": 82800.0,
        "left_share": 23 / 24,
        "kept": {"ms": 86_400_000, "by": "brokers"},
        "retention": {"ms": None, "bytes": None},
        "partitions": [
            {
                "broker": None,
                "partition": 0,
                "earliest": 2,
                "latest": 10,
                "held_back": 0,
                "transaction": None,
                "cursor": 4,
                "oldest_ms": NOW_MS - HOUR_MS,
                "expires_ms": NOW_MS + 23 * HOUR_MS,
                "lag": 6,
                "lost": 0,
            }
        ],
        "last_error": None,
        "warnings": ["mind"],
    }
