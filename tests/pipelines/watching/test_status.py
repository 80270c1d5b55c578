"""The arithmetic of lag and of the retention race, at its edges and where something is not known."""

import json
from typing import Any

import pytest

from kafka_io.client.retention import FOREVER
from kafka_io.model import BrokerPartition
from pipelines.watching.status import By, Kept, PartitionStatus, State, TopicStatus

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY = Kept(ms=24 * HOUR_MS, by=By.BROKERS)


def part(
    earliest: int | None, latest: int | None, cursor: int | None, *, age_h: float | None = None, left_h: float = 0
) -> PartitionStatus:
    """A partition whose oldest record that is not loaded is so old, and has so long to live."""
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


def topic(*parts: PartitionStatus, **more: Any) -> TopicStatus:
    fields: dict[str, Any] = {"incarnation": "7", "version": 3, "loaded_at_ms": NOW_MS - 60_000, "kept": DAY, **more}
    return TopicStatus(cluster="main", topic="clicks", table="/lake/main/clicks", partitions=parts, **fields)


@pytest.mark.parametrize(
    ("earliest", "latest", "cursor", "start", "lag", "lost"),
    [
        (0, 10, None, 0, 10, 0),
        (3, 10, None, 3, 7, 0),
        (0, 10, 4, 4, 6, 0),
        (0, 10, 10, 10, 0, 0),
        (4, 10, 4, 4, 6, 0),
        (5, 10, 4, 5, 5, 1),  # B07
        (10, 10, 4, 10, 0, 6),
        (0, 10, 12, 12, 0, 0),
        (None, None, 4, None, None, 0),
        (None, None, None, None, None, 0),
    ],
)
def test_lag_is_what_a_load_would_fetch_and_lost_what_none_can(
    earliest: int | None, latest: int | None, cursor: int | None, start: int | None, lag: int | None, lost: int
) -> None:
    one = part(earliest, latest, cursor)
    assert (one.next, one.lag, one.lost) == (start, lag, lost)


def test_the_lag_of_a_topic_is_known_if_that_of_all_partitions_is() -> None:
    assert topic(part(0, 10, 4), part(0, 5, None)).lag == 11
    assert topic(part(0, 10, 4), part(None, None, 4)).lag is None
    assert topic().lag is None


def test_the_first_to_go_counts() -> None:
    one = topic(part(0, 10, 4, age_h=2, left_h=22), part(0, 10, 4, age_h=5, left_h=19), LOADED)
    assert (one.late_s(NOW_MS), one.left_s(NOW_MS)) == (5 * 3600, 19 * 3600)
    assert one.left_share(NOW_MS) == 19 / 24


def test_what_is_loaded_is_not_late_and_loses_nothing() -> None:
    assert (topic(LOADED).late_s(NOW_MS), topic(LOADED).left_s(NOW_MS), topic(LOADED).left_share(NOW_MS)) == (
        0.0,
        None,
        None,
    )


def test_what_has_no_time_is_late_by_nobody_knows() -> None:
    one = topic(part(0, 10, 4))
    assert (one.late_s(NOW_MS), one.left_s(NOW_MS), one.state(NOW_MS)) == (None, None, State.BEHIND)


def test_a_record_from_the_future_is_not_late_and_lives_longer() -> None:
    one = topic(part(0, 10, 4, age_h=-48, left_h=72))
    assert (one.late_s(NOW_MS), one.left_s(NOW_MS), one.left_share(NOW_MS)) == (0, 72 * 3600, 1.0)
    assert one.state(NOW_MS) is State.BEHIND


def test_times_that_no_calendar_has_are_numbers_like_any() -> None:
    absurd = PartitionStatus(
        id=BrokerPartition(None, 0), earliest=0, latest=1, cursor=None, oldest_ms=2**62, expires_ms=2**62 + 1
    )
    assert topic(absurd).left_s(NOW_MS) == (2**62 + 1 - NOW_MS) / 1000
    assert json.dumps(topic(absurd).as_dict(NOW_MS))


def test_a_value_can_be_asked_at_a_later_time() -> None:
    one = topic(part(0, 10, 4, age_h=2, left_h=22))
    later = NOW_MS + 23 * HOUR_MS
    assert (one.late_s(later), one.left_s(later), one.left_share(later)) == (25 * 3600, -3600, 0.0)
    assert (one.state(NOW_MS), one.state(later)) == (State.BEHIND, State.LOSING)


@pytest.mark.parametrize(
    ("left_h", "state"),
    [(24, "behind"), (6, "behind"), (5.999, "at risk"), (0.001, "at risk"), (0, "losing"), (-1, "losing")],
)
def test_a_quarter_of_the_retention_is_the_edge_of_risk_and_none_that_of_loss(left_h: float, state: str) -> None:
    assert topic(part(0, 10, 4, age_h=24 - left_h, left_h=left_h)).state(NOW_MS) == state


def test_an_estimate_is_never_taken_for_a_loss() -> None:
    kept = Kept(ms=24 * HOUR_MS, by=By.ESTIMATE)
    assert topic(part(5, 10, 5, age_h=24), kept=kept).state(NOW_MS) is State.AT_RISK


def test_records_that_are_kept_for_no_time_at_all_are_being_lost() -> None:
    kept = Kept(ms=0, by=By.BROKERS)
    assert topic(part(0, 10, 4, age_h=1, left_h=-1), kept=kept).state(NOW_MS) is State.LOSING


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (topic(LOADED), State.LOADED),
        (topic(part(0, 10, 4)), State.BEHIND),
        (topic(part(None, None, 4)), State.BEHIND),
        (topic(part(0, 10, None), version=None, loaded_at_ms=None), State.NEW),
        (topic(part(5, 10, 4)), State.LOSING),
        (topic(part(0, 10, 4), error="LogTorn: no"), State.ERROR),
        (topic(part(5, 10, 4), error="TopicRecreated: no"), State.ERROR),
        (topic(part(None, None, 4), incarnation=None), State.GONE),
    ],
)
def test_a_topic_is_in_one_state(one: TopicStatus, state: State) -> None:
    assert one.state(NOW_MS) is state


def test_the_most_urgent_comes_first() -> None:
    in_order = [
        topic(part(5, 10, 4, age_h=1, left_h=23)),
        topic(part(0, 10, 4), error="LogTorn: no"),
        topic(part(0, 10, 4, age_h=22, left_h=2)),
        topic(part(0, 10, 4, age_h=20, left_h=4)),
        topic(part(0, 10, 4, age_h=2, left_h=22)),
        topic(part(0, 99, 4)),
        topic(part(0, 10, 4)),
        topic(part(0, 10, None), loaded_at_ms=None),
        topic(part(None, None, 4), incarnation=None),
        topic(LOADED),
    ]
    mixed = [*in_order[5:], *in_order[:5]]
    assert sorted(mixed, key=lambda one: one.urgency(NOW_MS)) == in_order


def test_records_that_do_not_expire_have_no_limit() -> None:
    assert (Kept(ms=FOREVER, by=By.BROKERS).limit_ms, Kept(ms=None, by=By.NOBODY).limit_ms, DAY.limit_ms) == (
        None,
        None,
        24 * HOUR_MS,
    )


def test_scripts_get_all_of_it() -> None:
    told = topic(part(2, 10, 4, age_h=1, left_h=23), warnings=("mind",)).as_dict(NOW_MS)
    assert json.loads(json.dumps(told)) == {
        "cluster": "main",
        "topic": "clicks",
        "incarnation": "7",
        "table": "/lake/main/clicks",
        "version": 3,
        "loaded_at_ms": NOW_MS - 60_000,
        "error": None,
        "lag": 6,
        "lost": 0,
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
                "cursor": 4,
                "oldest_ms": NOW_MS - HOUR_MS,
                "expires_ms": NOW_MS + 23 * HOUR_MS,
                "lag": 6,
                "lost": 0,
            }
        ],
        "warnings": ["mind"],
    }
