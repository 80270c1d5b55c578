"""Positions and queries as they are written on a command line."""

from datetime import UTC, datetime

import pytest

from kafka_io.model import BrokerPartition
from pipelines.plan.positions import NamedPosition, TableCursor, TimePosition, TopicPosition, parse_topic_position
from pipelines.tail.query import TailQuery

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_MS = 1_769_860_800_000


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", NamedPosition.EARLIEST),
        ("latest", NamedPosition.LATEST),
        ("committed", TableCursor.COMMITTED),
        ("0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("2026-01-31T12:00", TimePosition(NOON_MS)),
        ("2026-01-31T12:00:00.007Z", TimePosition(NOON_MS + 7)),
        ("2026-01-31T13:00+01:00", TimePosition(NOON_MS)),
        ("2026-01-31", TimePosition(NOON_MS - 12 * 3_600_000)),
        ("1969-12-31T23:59:59", TimePosition(-1000)),
        ("-30s", TimePosition(NOON_MS - 30_000)),
        ("-15m", TimePosition(NOON_MS - 900_000)),
        ("-2h", TimePosition(NOON_MS - 7_200_000)),
        ("-1d", TimePosition(NOON_MS - 86_400_000)),
    ],
)
def test_a_position_is_a_name_an_offset_or_a_time(text: str, position: TopicPosition) -> None:
    assert parse_topic_position(text, now=NOW) == position


@pytest.mark.parametrize(
    "text", ["", "EARLIEST", "-1", "-15", "15m", "-15w", "-999999999d", "9223372036854775808", "2026-13-01", "\u0661"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a position in a log"):
        parse_topic_position(text, now=NOW)


def test_a_query_is_parsed_from_arguments() -> None:
    assert TailQuery.parse("clicks", "-15m", "latest", ["3", "0-1"], now=NOW) == TailQuery(
        topic="clicks",
        since=TimePosition(NOON_MS - 900_000),
        until=NamedPosition.LATEST,
        partitions=frozenset({BrokerPartition(None, 3), BrokerPartition(0, 1)}),
    )
    assert TailQuery.parse("clicks", "latest", None, now=NOW) == TailQuery(topic="clicks")


@pytest.mark.parametrize(
    ("until", "partitions", "message"),
    [
        ("earliest", [], "'earliest' cannot be the end"),
        ("committed", [], "'committed' cannot be the end"),
        (None, ["x"], "'x' is not a partition"),
    ],
)
def test_wrong_arguments_are_refused(until: str | None, partitions: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TailQuery.parse("clicks", "latest", until, partitions, now=NOW)
