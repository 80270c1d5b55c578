"""Answers that brokers gave before a table was read are used only if the table does not contradict them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import NetworkError
from kafka_io.messages.list_offsets import ListOffsetsRequest
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.ledger.ledger import TableState, TopicFindings, TopicIdentity
from pipelines.load.discovered import TopicAnswers
from pipelines.load.first_answers import TOPICS_PER_REQUEST, FirstAnswers
from pipelines.load.load import Loader
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.loaders import changed
from tests.fakes.records import holding, table
from tests.pipelines.load.test_choices import load, loader_of

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
LIST_OFFSETS = ListOffsetsRequest.API.key
T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Followed(FirstAnswers):
    """First answers that are followed by something."""

    def __init__(
        self, cluster: Cluster, topics: Sequence[str], now: Callable[[], datetime], then: Callable[[], object]
    ) -> None:
        super().__init__(cluster, topics, now)
        self._then = then

    def of(self, topic: str) -> TopicAnswers | None:
        """See FirstAnswers."""
        first = super().of(topic)
        self._then()
        return first


@contextmanager
def loader_with_first_answers(
    fake: FakeCluster, folder: Path, then: Callable[[], object] = lambda: None, **chosen: Any
) -> Iterator[Loader]:
    """A loader whose first answers are followed by something, before the table is read."""
    with loader_of(fake, folder, **chosen) as loader:
        yield replace(loader, first_answers=Followed(loader.run.cluster, ["clicks"], loader.run.now, then))


def test_a_load_with_first_answers_asks_for_no_bounds(fake: FakeCluster, tmp_path: Path) -> None:
    with fake, loader_with_first_answers(fake, tmp_path) as loader:
        result = loader.load("clicks")
    assert (result.error, result.rows) == (None, 30)
    assert len(fake.heard(LIST_OFFSETS)) == 3


def test_a_table_that_another_run_advanced_is_compared_with_new_answers(fake: FakeCluster, tmp_path: Path) -> None:
    """The answers say that the log ends before the table: it must not count as truncated."""

    def another_run() -> None:
        fake.logs[0] = holding(0, 25)
        assert load(fake, tmp_path).rows == 5
        fake.logs[0] = holding(0, 27)

    with fake:
        load(fake, tmp_path)
        with loader_with_first_answers(fake, tmp_path, another_run) as loader:
            result = loader.load("clicks")
    assert (result.error, result.rows) == (None, 2)


@pytest.mark.parametrize("choice", ["fail", "restart"])
def test_a_run_that_was_overtaken_by_a_restart_loads_the_newer_incarnation(
    choice: str, fake: FakeCluster, tmp_path: Path
) -> None:
    """It must not take the table back to the former incarnation, which the first answers still show (fault B05)."""

    def another_run() -> None:
        fake.topic_id = UUID(int=9)
        fake.logs = {0: holding(0, 4), 1: Log(entries=[], start=0, end=0)}
        assert load(fake, tmp_path, on_recreated="restart").error is None
        fake.logs[0] = holding(0, 6)

    with fake:
        load(fake, tmp_path)
        with loader_with_first_answers(fake, tmp_path, another_run, on_recreated=choice) as loader:
            result = loader.load("clicks")
        assert (result.error, result.rows) == (None, 2)
        entry = table(tmp_path).snapshot().entry
    assert entry is not None
    assert entry.covered == {A: (0, 6)}


def test_a_load_with_first_answers_was_planned_when_they_were_given(fake: FakeCluster, tmp_path: Path) -> None:
    """Records that were written later are not in the bounds, so nothing may claim to contain them."""
    times = iter([T0 + timedelta(seconds=number) for number in range(100)])
    with fake, loader_of(fake, tmp_path) as loader:
        answers = FirstAnswers(loader.run.cluster, ["clicks"], lambda: T0)
        later = changed(replace(loader, first_answers=answers), now=lambda: next(times) + timedelta(hours=1))
        assert later.load("clicks").error is None
    entry = table(tmp_path).snapshot().entry
    assert entry is not None
    assert {part.loaded_at_us for part in entry.ranges} == {int(T0.timestamp() * 1_000_000)}


def state(**changes: Any) -> TableState:
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    return replace(TableState(topic=topic, covered={A: (0, 20)}, epochs={A: 5}), **changes)


@pytest.mark.parametrize(
    ("changes", "agrees"),
    [
        ({}, True),
        ({"covered": {}}, True),
        ({"covered": {A: (0, 10)}}, True),
        ({"covered": {B: (0, 1)}}, True),  # its broker did not answer
        ({"covered": {A: (0, 21)}}, False),
        ({"covered": {A: (0, 4)}}, False),
        ({"covered": {BrokerPartition(None, 2): (0, 1)}}, False),
        ({"epochs": {A: 6}}, False),
        ({"findings": TopicFindings(replaced="6")}, False),
    ],
)
def test_answers_agree_with_a_table_that_is_not_newer(changes: Mapping[str, Any], agrees: bool) -> None:
    answers = TopicAnswers(
        asked=T0,
        topic=TopicEntry(name="clicks", incarnation="7", partitions=(A, B)),
        bounds={A: Bounds(earliest=5, latest=20, epoch=5), B: NetworkError("no answer")},
    )
    assert answers.agree_with(state(**changes)) is agrees


class Asked:
    """A cluster that notes for how many topics it was asked."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def described(self, names: Sequence[str]) -> dict[str, TopicEntry]:
        """See Cluster: it has all but one topic."""
        self.numbers.append(len(names))
        return {
            name: TopicEntry(name=name, incarnation="7", partitions=(A,)) for name in names if name != "does not exist"
        }

    def bounds_of(self, topics: Mapping[str, Iterable[BrokerPartition]]) -> dict[str, Any]:
        """See Cluster."""
        return {topic: {A: Bounds(earliest=0, latest=1)} for topic in topics}


def test_brokers_are_asked_for_many_topics_at_once_and_again_when_answers_are_old() -> None:
    cluster, now = Asked(), [T0]
    topics = ["does not exist", *(f"topic-{number}" for number in range(TOPICS_PER_REQUEST + 20))]
    answers = FirstAnswers(cast("Cluster", cluster), topics, lambda: now[0])
    assert answers.of(topics[0]) is None
    for topic in topics[1:10]:
        first = answers.of(topic)
        assert first is not None
        assert (first.topic.name, first.asked) == (topic, T0)
    assert cluster.numbers == [TOPICS_PER_REQUEST]
    now[0] += timedelta(seconds=31)
    for topic in topics[10:]:
        first = answers.of(topic)
        assert first is not None
        assert first.asked == now[0]
    assert cluster.numbers == [TOPICS_PER_REQUEST, TOPICS_PER_REQUEST, 11]
