"""An hour is complete only if the table has the share of what producers counted; the difference is exact."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.status import audited_hours
from pipelines.status.audit import HOUR_MS
from pipelines.status.audited_hours import Audit, AuditedHour, AuditedHours
from pipelines.status.completeness import wait_until_complete
from pipelines.status.hour_counts import hour_counts
from resources.errors import AuditUnknown
from tests.audited_shop import COUNTS, EIGHT, SEVEN, Shop

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        shop = Shop(tmp_path, f"127.0.0.1:{broker.port}")
        shop.configure()
        yield shop


def count(total: Any, **fields: Any) -> bytes:
    """A count message of the hour from 7 to 8."""
    message = {"topic": "clicks", "window_start_ms": SEVEN, "window_ms": HOUR_MS, "producer": "web-1", "session": "a"}
    return json.dumps({**message, "count": total, **fields}).encode()


def numbers(audited: AuditedHours) -> list[tuple[int, int, int]]:
    """Start, counted records and rows of the hours that have any."""
    return [(hour.start_ms, hour.expected, hour.rows) for hour in audited.hours if hour.expected or hour.rows]


# fault N56
def test_a_lost_record_is_a_difference_of_one_and_late_rows_complete_the_hour(shop: Shop) -> None:
    shop.send([SEVEN, SEVEN + 1, EIGHT - 1, EIGHT])
    shop.send_values(count(1, session="lost"))
    shop.load()
    assert numbers(shop.compare()) == [(SEVEN, 4, 3)]
    result = shop.penstock("complete", "clicks", "--through", "2026-01-31T08:59Z", "--json")
    document = json.loads(result.stdout)
    [printed] = document["results"]
    assert (document["exit_code"], result.exit_code, printed["complete"]) == (1, 1, False)
    assert printed["valid_through_ms"] > EIGHT
    audit = printed["audit"]
    assert audit["incomplete_hours"] == [{"start_ms": SEVEN, "expected": 4, "rows": 3, "difference": 1}]
    assert (audit["counts_topic"], audit["has_all_counts"], audit["compared_hours"]) == (COUNTS, True, 24)
    shown = shop.penstock("complete", "clicks", "--through", "2026-01-31T08:00Z")
    assert "clicks is not complete through 2026-01-31 08:00:00 UTC" in shown.stdout
    assert "2026-01-31 07:00:00 UTC         4     3           1" in shown.stdout
    shop.send([EIGHT - 2], producer=None)
    shop.load("clicks")
    complete = shop.penstock("complete", "clicks", "--through", "2026-01-31T08:00Z")
    assert complete.exit_code == 0
    assert "24 hours compared with clicks-counts: 4 rows, 4 counted records" in complete.stdout


# fault N57
def test_the_largest_total_of_a_session_counts_in_whichever_order_and_however_often_it_arrives(shop: Shop) -> None:
    shop.send([SEVEN] * 3, producer=None)
    shop.send_values(count(1), count(3), count(2), count(3), count(3))
    shop.load()
    assert numbers(shop.compare()) == [(SEVEN, 3, 3)]
    shop.send_values(count(3), count(1))
    shop.load()
    assert shop.compare().is_complete


def test_sessions_producers_and_windows_of_an_hour_are_added_up(shop: Shop) -> None:
    shop.send([SEVEN, SEVEN + 1, EIGHT - 1], window_ms=HOUR_MS // 6)
    shop.send([SEVEN], producer="web-2")
    shop.send([SEVEN, SEVEN - 1], producer="web-2")
    shop.send_values(count(100, topic="views"), count(2, producer="app"), count(3, producer="api"))
    shop.load()
    assert numbers(shop.compare()) == [(SEVEN - HOUR_MS, 1, 1), (SEVEN, 10, 5)]


def test_wrong_clocks_change_only_the_hours_that_they_name(shop: Shop) -> None:
    shop.send([0, 1, SEVEN, 253_402_300_799_000])
    shop.load()
    audited = shop.compare()
    assert (numbers(audited), audited.malformed_counts) == ([(SEVEN, 1, 1)], 0)
    assert numbers(shop.compare(HOUR_MS)) == [(0, 2, 2)]


# fault N57
def test_counts_that_cannot_be_used_are_reported_and_change_no_sum(shop: Shop) -> None:
    shop.send([SEVEN])
    bad = [
        b"{",
        b"{}",
        count(-1),
        count(10**16),
        count("1"),
        count(1, producer=None),
        count(1, session=None),
        count(1, topic=None),
        count(1, window_ms=0),
        count(1, window_ms=-HOUR_MS),
        count(1, window_ms=-1, window_start_ms=-(2**63)),
        count(1, window_ms=2 * HOUR_MS),
        count(1, window_ms=7_000),
        count(1, window_ms=HOUR_MS, window_start_ms=SEVEN + 1),
        count(1, window_start_ms=None),
        count(1, window_start_ms=-HOUR_MS),
        count(1, window_start_ms=SEVEN * 1000),
    ]
    shop.send_values(*bad, None)
    shop.load()
    audited = shop.compare()
    assert (numbers(audited), audited.malformed_counts) == ([(SEVEN, 1, 1)], len(bad))
    result = shop.penstock("complete", "clicks", "--through", "2026-01-31T08:00Z")
    assert result.exit_code == 0
    assert f"{len(bad)} count messages in clicks-counts cannot be used" in " ".join(result.stderr.split())


def test_rows_that_nobody_counted_are_a_warning(shop: Shop) -> None:
    shop.send([SEVEN, SEVEN], producer=None)
    shop.send([EIGHT])
    shop.load()
    result = shop.penstock("complete", "clicks", "--through", "2026-01-31T08:00Z")
    assert (result.exit_code, "1 hours have rows, but no producer counted any" in result.stderr) == (0, True)


# fault N58
def test_an_hour_is_not_complete_before_all_of_its_counts_are_known(shop: Shop) -> None:
    shop.configure(f"[topics.{COUNTS}]\nallowed_lateness_minutes = 2_000_000\n")
    shop.send([SEVEN])
    shop.load()
    audited = shop.compare()
    assert (audited.incomplete_hours, audited.has_all_counts, audited.is_complete) == ([], False, False)
    result = shop.penstock("complete", "clicks", "--through", "2026-01-31T08:00Z")
    assert (result.exit_code, "clicks-counts is only valid through 2" in result.stdout) == (1, True)


def test_counts_are_needed_for_as_long_as_records_of_the_hour_may_be_sent(shop: Shop) -> None:
    minutes = (time.time() * 1000 - EIGHT) // 60_000 - 5
    shop.configure(audit=f'audit = "{COUNTS}"\nallowed_lateness_minutes = {minutes}\n')
    shop.send([SEVEN])
    shop.load()
    audited = shop.compare()
    assert audited.counts_needed_ms == EIGHT + minutes * 60_000
    assert (audited.incomplete_hours, audited.has_all_counts) == ([], False)
    shop.configure(f"[topics.{COUNTS}]\nallowed_lateness_minutes = 0\n")
    shop.send([SEVEN])
    shop.load()
    assert shop.compare().has_all_counts


def test_only_the_chosen_hours_before_the_time_are_compared(shop: Shop) -> None:
    shop.send([SEVEN, EIGHT])
    shop.send_values(count(1, window_start_ms=SEVEN - HOUR_MS))
    shop.load()
    assert [hour.start_ms for hour in shop.compare(hours=2).hours] == [SEVEN - HOUR_MS, SEVEN]
    assert shop.compare(EIGHT + HOUR_MS - 1, hours=1).is_complete
    assert not shop.compare(hours=2).is_complete
    for hours, code in (("1", 0), ("2", 1), ("0", 2)):
        assert shop.penstock("complete", "clicks", "--through", "2026-01-31T08:30Z", "--hours", hours).exit_code == code


def test_the_wait_compares_again_only_after_a_commit(shop: Shop) -> None:
    shop.send([SEVEN])
    shop.send_values(count(1, session="late"))
    shop.load()
    waits: list[float] = []

    def load_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            shop.send([SEVEN], producer=None)
            shop.load("clicks")

    audit = Audit.of(shop.settings, "main", "clicks")
    with patch.object(audited_hours, "hour_counts", side_effect=hour_counts) as counting:
        known = wait_until_complete(
            shop.table(), EIGHT, 60, audit=audit, sleep=load_meanwhile, clock=lambda: float(len(waits))
        )
    assert (known.is_through(EIGHT), len(waits), counting.call_count) == (True, 3, 2)


# fault N58
def test_counts_that_are_missing_or_have_another_form_are_an_error(shop: Shop) -> None:
    shop.configure(audit="")
    shop.send([SEVEN])
    shop.load("clicks")
    usage = shop.penstock("complete", "clicks", "--through", "2026-01-31T08:00Z", "--hours", "3")
    assert (usage.exit_code, "--hours needs the setting `audit`" in usage.stderr) == (2, True)
    shop.configure()
    with pytest.raises(AuditUnknown, match="load the topic clicks-counts"):
        shop.compare()
    shop.configure(f'[topics.{COUNTS}]\nformat = "text"\n', audit="")
    shop.load(COUNTS)
    shop.configure()
    with pytest.raises(AuditUnknown, match="no event time"):
        shop.compare()
    shop.configure(f'[topics.{COUNTS}]\nformat = "text"\nevent_time = "timestamp"\n', audit="")
    shop.load(COUNTS)
    shop.configure()
    with pytest.raises(AuditUnknown, match="no column `topic` of the type string"):
        shop.compare()


# fault N56
@pytest.mark.parametrize(
    ("share", "expected", "rows", "enough"),
    [
        (0.999, 1000, 999, True),
        (0.999, 1000, 998, False),
        (0.999, 3, 2, False),
        (0.999, 0, 0, True),
        (0.999, 5, 6, True),
        (0.07, 100, 7, True),  # as a binary float, 0.07 * 100 is more than 7
        (1.0, 10**15, 10**15 - 1, False),
    ],
)
def test_the_share_is_compared_exactly(share: float, expected: int, rows: int, enough: bool) -> None:
    assert AuditedHour(start_ms=0, expected=expected, rows=rows).has_share(share) is enough
