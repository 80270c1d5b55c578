"""A request for a replay is refused before anything is asked if it cannot have a meaning."""

from datetime import UTC, datetime

import pytest

from kafka_io.model import BrokerPartition
from pipelines.loading.positions import NamedPosition
from pipelines.maintenance.replay_request import ReplayRequest

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def parsed(since: str, until: str, *partitions: str) -> ReplayRequest:
    return ReplayRequest.parse("clicks", since, until, partitions, now=NOW)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("5", "latest"), "an offset belongs to a single partition"),
        (("earliest", "5"), "an offset belongs to a single partition"),
        (("5", "9"), "an offset belongs to a single partition"),
        (("5", "latest", "0", "1"), "an offset belongs to a single partition"),
        (("latest", "earliest"), "nothing is between latest and earliest"),
        (("latest", "-1h"), "nothing is between"),
        (("earliest", "earliest"), "nothing is between"),
        (("committed", "latest"), "nothing is between"),
        (("5", "5", "0"), "nothing is between"),
        (("6", "5", "0"), "nothing is between"),
        (("-1h", "-1h"), "nothing is between"),
        (("-1h", "-2h"), "nothing is between"),
        (("soon", "latest"), "is not a position in a log"),
    ],
)
def test_a_request_without_a_meaning_is_refused(words: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parsed(*words)


@pytest.mark.parametrize(
    "words", [("5", "6", "0"), ("-2h", "-1h"), ("earliest", "latest"), ("earliest", "-1h", "0", "1"), ("-1h", "latest")]
)
def test_a_request_may_have_two_edges_of_any_kind(words: tuple[str, ...]) -> None:
    assert parsed(*words).partitions == {BrokerPartition(None, int(number)) for number in words[2:]}


def test_edges_keep_their_kind() -> None:
    request = parsed("7", "latest", "3")
    assert (request.since, request.until, request.on_compacted) == (7, NamedPosition.LATEST, "fail")
