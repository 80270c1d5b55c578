"""Points of a log as they are written on a command line."""

from datetime import UTC, datetime

import pytest

from kafka_io.model import BrokerPartition
from pipelines.points import Named, Time
from pipelines.tailing.points import Cursor, Point, parse_point
from pipelines.tailing.query import Query

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_MS = 1_769_860_800_000


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("earliest", Named.EARLIEST),
        ("latest", Named.LATEST),
        ("committed", Cursor.COMMITTED),
        ("0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("2026-01-31T12:00", Time(NOON_MS)),
        ("2026-01-31T12:00:00.007Z", Time(NOON_MS + 7)),
        ("2026-01-31T13:00+01:00", Time(NOON_MS)),
        ("2026-01-31", Time(NOON_MS - 12 * 3_600_000)),
        ("1969-12-31T23:59:59", Time(-1000)),
        ("-30s", Time(NOON_MS - 30_000)),
        ("-15m", Time(NOON_MS - 900_000)),
        ("-2h", Time(NOON_MS - 7_200_000)),
        ("-1d", Time(NOON_MS - 86_400_000)),
    ],
)
def test_a_point_is_a_name_an_offset_or_a_time(text: str, point: Point) -> None:
    assert parse_point(text, now=NOW) == point


@pytest.mark.parametrize(
    "text", ["", "EARLIEST", "-1", "-15", "15m", "-15w", "-999999999d", "9223372036854775808", "2026-13-01", "\u0661"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no point of a log"):
        parse_point(text, now=NOW)


def test_a_query_is_read_from_words() -> None:
    assert Query.parse("clicks", "-15m", "latest", ["3", "0-1"], now=NOW) == Query(
        topic="clicks",
        since=Time(NOON_MS - 900_000),
        until=Named.LATEST,
        partitions=frozenset({BrokerPartition(None, 3), BrokerPartition(0, 1)}),
    )
    assert Query.parse("clicks", "latest", None, now=NOW) == Query(topic="clicks")


@pytest.mark.parametrize(
    ("until", "partitions", "said"),
    [("earliest", [], "nothing ends at"), ("committed", [], "nothing ends at"), (None, ["x"], "'x' is no partition")],
)
def test_words_that_have_no_meaning_are_refused(until: str | None, partitions: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Query.parse("clicks", "latest", until, partitions, now=NOW)
