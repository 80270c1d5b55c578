"""The times and tables with which slices are fetched."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock, patch

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.values.json.inference import MAX_VALUES
from pipelines.fetch.slice_fetcher import (
    FetchOrder,
    RoutedTable,
    SliceFetcher,
    TopicRouting,
    loading_time,
    microseconds,
)
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.ledger.slice_facts import DecodingNeeds, PartNeeds, SliceFacts

NOON, TICK = datetime(2026, 11, 28, 12, tzinfo=UTC), timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("began", "time"),
    [
        (NOON - timedelta(days=400), NOON - timedelta(days=400)),  # the time of a clock that is wrong is not changed
        (NOON - TICK, NOON + TICK),
        (NOON, NOON + TICK),
        (NOON + TICK, NOON + TICK),
        (NOON + 2 * TICK, NOON + 2 * TICK),
    ],
)
def test_two_commits_have_different_loading_times_if_the_clock_stands_still(
    began: datetime, time: datetime
) -> None:  # fault E08
    state = TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7"))
    ranges = tuple(
        CommittedRange(offsets=OffsetRange(BrokerPartition(None, number), 0, 5), loaded_at_us=microseconds(at))
        for number, at in enumerate((NOON - timedelta(hours=1), NOON, NOON - timedelta(hours=2)))
    )
    entry = LedgerEntry(commit="c", run="r", kind=CommitKind.REPLAY, sequence=1, ranges=ranges, state=state)
    assert loading_time(began, entry) == time
    assert loading_time(began, None) == began


class Learning:
    """A decoding that needs so many samples, and notes what it learns."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.learned: list[DecodingNeeds] = []

    @property
    def needs_sample(self) -> bool:
        """Whether a sample has to show more."""
        return len(self.learned) < self.samples

    def learn_from(self, needs: Iterable[DecodingNeeds]) -> None:
        """Note the needs."""
        self.learned += needs

    def keep_columns(self, facts: Iterable[SliceFacts]) -> None:
        """See Decoding."""


def test_another_sample_is_read_only_for_tables_whose_schemas_were_just_met() -> None:
    """A schema must be known before a sample can show which of its message types there are."""
    schemas, fields = (DecodingNeeds(values=PartNeeds(**own)) for own in ({"schemas": (7,)}, {"fields": b"f"}))
    needs: dict[str, list[DecodingNeeds | None]] = {"a": [schemas, fields], "b": [fields], "c": [None], "d": [schemas]}
    decodings = {route: Learning(1 if route == "d" else 2) for route in needs}
    own, *others = (RoutedTable(route=route, uri=route, decoding=decodings[route]) for route in needs)  # type: ignore[arg-type]
    slices = [OffsetRange(BrokerPartition(None, 0), 0, 10 * MAX_VALUES)]
    order = FetchOrder(
        topic=Mock(),
        table_uri="a",
        slices=slices,
        epochs={},
        began=NOON,
        sizes=Mock(),
        routing=TopicRouting(router=Mock(), own="a", others=tuple(others)),
    )
    fetched: list[tuple[list[str], int]] = []

    def fetch(_: SliceFetcher, order: FetchOrder, tables: Sequence[RoutedTable]) -> list[SliceFacts]:
        [offsets] = order.slices
        fetched.append(([table.route for table in tables], offsets.size))
        lacking: Any = (
            (table.route, needs[table.route].pop(0) if needs[table.route] and offsets.size == MAX_VALUES else None)
            for table in tables
        )
        return [SliceFacts(range=CommittedRange(offsets=offsets), route=route, needs=own) for route, own in lacking]

    with patch.object(SliceFetcher, "fetch_slices", fetch):
        facts = SliceFetcher(cluster=Mock(), runner=Mock(), caps=Mock()).fetch_decoded(order, own.decoding)
    assert fetched == [(["a", "b", "c", "d"], MAX_VALUES), (["a"], MAX_VALUES), (["a", "b", "c", "d"], 10 * MAX_VALUES)]
    assert [part.route for part in facts] == ["a", "b", "c", "d"]
    assert {route: decoding.learned for route, decoding in decodings.items()} == {
        "a": [schemas, fields],
        "b": [fields],
        "c": [],
        "d": [schemas],
    }
