"""Replays at the same time as loads, rewinds and other replays: each row is there once, whoever commits first."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

from kafka_io.messages.list_offsets import ListOffsetsRequest
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.wire.conversation import ReceivedRequest
from kafka_io.wire.types import NULL_UUID
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.table.table_store import CommitOutcomeUnknown, TableSnapshot
from resources.progress import Progress
from tests.crash.child import DriverOptions
from tests.crash.drivers import Driver
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding, numbered
from tests.fakes.records import values as values_in
from tests.fakes.typed import TypedTopic
from tests.pipelines.conftest import Modern
from tests.pipelines.loaded import Loaded

pytestmark = pytest.mark.slow

ONE = BrokerPartition(None, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken(DeltaLakeTable):
    """A table in which something happens just before a replay is written."""

    events: list[Callable[[], object]] = field(default_factory=list)

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """Let it happen once, then write."""
        while self.events:
            self.events.pop()()
        return DeltaLakeTable.write(self, snapshot, entry, new_slices, replaced)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent(DeltaLakeTable):
    """A table whose store does not answer once; the write has landed."""

    silences: list[str] = field(default_factory=lambda: ["once"])

    def write(
        self,
        snapshot: TableSnapshot,
        entry: LedgerEntry,
        new_slices: Sequence[SliceFacts],
        replaced: Sequence[CommittedRange],
    ) -> int:
        """Write, and lose the answer."""
        version = DeltaLakeTable.write(self, snapshot, entry, new_slices, replaced)
        while self.silences:
            raise CommitOutcomeUnknown(self.silences.pop())
        return version


def overtaken(topic: Loaded, event: Callable[[], object]) -> Overtaken:
    """The topic's table."""
    table = topic.table
    return Overtaken(lake=table.lake, uri=table.uri, where=table.where, events=[event])


def loaded(modern: Modern, count: int = 100) -> Loaded:
    """The topic, with one value of its table spoilt."""
    modern.publish(count)
    modern.topic.load()
    modern.topic.spoil(ONE, 5)
    return modern.topic


def values(count: int) -> list[tuple[object, ...]]:
    """Check the rows of the topic."""
    return [(0, number, None, b"value-%d" % number) for number in range(count)]


def assert_whole(topic: Loaded, count: int) -> None:
    proof = topic.deep()
    assert proof.proven, proof.problems
    assert topic.rows() == values(count)


def test_a_load_that_commits_meanwhile_lands_and_so_does_the_replay(modern: Modern) -> None:
    topic = loaded(modern)
    modern.publish(30, first=100)
    result = topic.replay("earliest", "latest", table=overtaken(topic, topic.load))
    assert (result.error, result.changed) == (None, True)
    assert topic.covered(ONE) == (0, 130)
    assert_whole(topic, 130)


def test_rows_that_somebody_deletes_outside_of_a_replay_meanwhile_do_not_become_a_gap(
    modern: Modern,
) -> None:  # fault P04
    topic = loaded(modern)
    version = topic.version
    result = topic.replay("0", "10", "0", table=overtaken(topic, lambda: topic.lose(ONE, 20, 21, 22)))
    assert "ReplayRefused: partition 0 [0, 25) holds 22 rows, but its commit counted 25" in str(result.error)
    assert topic.version == version + 1
    assert topic.problems() == ("partition 0 [0, 25) holds 22 rows, but its commit counted 25",)
    assert topic.replay("earliest", "latest").changed
    assert_whole(topic, 100)


def test_two_replays_at_once_leave_each_row_once(modern: Modern) -> None:
    topic = loaded(modern)
    result = topic.replay("earliest", "50", "0", table=overtaken(topic, lambda: topic.replay("3", "60", "0")))
    assert (result.error, result.changed) == (None, True)
    assert_whole(topic, 100)


def test_a_replay_is_refused_if_a_rewind_uncovered_its_offsets_meanwhile(modern: Modern) -> None:
    topic = loaded(modern)
    modern.publish(30, first=100)
    topic.load()

    def back() -> None:
        rewind(plan_rewind(topic.table, 1, run="back"))

    result = topic.replay("earliest", "latest", table=overtaken(topic, back))
    assert "CommitRefused: the table covers [0, 100) of partition 0 now" in str(result.error)
    assert topic.rows() == values(100)  # version 1 is from before it was spoilt
    assert topic.problems() == ()
    topic.load()
    assert not topic.replay("earliest", "latest").changed
    assert_whole(topic, 130)


def test_a_replay_lands_after_a_rewind_that_leaves_its_offsets_covered(modern: Modern) -> None:
    topic = loaded(modern)
    modern.publish(30, first=100)
    topic.load()

    def back() -> None:
        rewind(plan_rewind(topic.table, 2, run="back"))

    result = topic.replay("0", "50", "0", table=overtaken(topic, back))
    assert (result.error, result.changed) == (None, True)
    assert topic.problems() == ()
    topic.load()
    assert_whole(topic, 130)


def test_a_replay_is_refused_where_a_truncated_log_was_found_meanwhile(modern: Modern) -> None:  # fault G09
    """The records were fetched before, so they may be those of the old log; also where the table still covers them."""
    topic = loaded(modern)

    def truncated(works: Sequence[FetchTask], on_progress: Progress, _ahead: object) -> list[SliceFacts]:
        facts = fetch_here(works, on_progress)
        snapshot = topic.table.snapshot()
        assert snapshot.entry is not None
        commit(
            topic.table,
            snapshot,
            CutChange(state=snapshot.entry.state, ranges=(OffsetRange(ONE, 80, 100),), run="other"),
        )
        return facts

    result = topic.replay("0", "50", "0", fetch=truncated)
    assert "CommitRefused: another run found a truncated log" in str(result.error)
    assert topic.covered(ONE) == (0, 80)
    assert topic.rows("value")[5] == (b"spoilt",)
    assert topic.problems() == ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Harmed(DeltaLakeTable):
    """A table whose store loses a staged file just before it is to be committed."""

    def check(self, files: Sequence[SliceFacts]) -> None:
        """Lose one, and look."""
        (Path(self.uri) / files[0].files[0].path).unlink()
        DeltaLakeTable.check(self, files)


def test_the_files_of_a_replay_are_checked_before_its_commit(modern: Modern) -> None:  # fault G11
    topic = loaded(modern)
    table, version = topic.table, topic.version
    result = topic.replay("0", "50", "0", table=Harmed(lake=table.lake, uri=table.uri, where=table.where))
    assert "FileRefused: the data file _replays/" in str(result.error)
    assert topic.version == version


def test_a_replay_whose_answer_is_lost_is_found_and_not_done_twice(modern: Modern) -> None:  # fault L03
    topic = loaded(modern)
    table = topic.table
    version = topic.version
    result = topic.replay("earliest", "latest", table=Silent(lake=table.lake, uri=table.uri, where=table.where))
    assert (result.error, result.version, topic.version) == (None, version + 1, version + 1)
    assert_whole(topic, 100)


def test_a_rewind_before_a_replay_brings_back_the_replaced_rows(modern: Modern) -> None:
    topic = loaded(modern)
    before = topic.version
    topic.replay("earliest", "latest")
    rewind(plan_rewind(topic.table, before, run="back"))
    assert topic.deep().compared[0].comparison.differing.first == (5,)
    assert topic.replay("earliest", "latest").changed
    assert_whole(topic, 100)


def test_a_replay_does_not_read_a_topic_whose_id_contradicts_that_of_the_table(tmp_path: Path) -> None:  # fault B06
    """While brokers are upgraded, some of them do not show the id of a topic."""
    fake = FakeCluster(logs={0: holding(0, 10)}, topic_id=UUID(int=7))
    topic = TypedTopic(fake=fake, folder=tmp_path, format_={})
    with fake:
        assert topic.load().error is None
        fake.topic_id = NULL_UUID
        bounds = fake.brokers[0].handlers[ListOffsetsRequest.API.key]

        def recreated(received: ReceivedRequest) -> object:
            fake.topic_id, fake.logs[0] = UUID(int=8), holding(0, 10, incarnation="second")
            return bounds(received)

        fake.brokers[0].handlers[ListOffsetsRequest.API.key] = recreated
        assert (topic.replay().error or "").startswith(("TopicReplaced: ", "TopicRecreated: "))
    assert values_in(tmp_path) == numbered(0, 10)


STEPS = ("replay planned", "replay staged", "replay compared", "before replay entry", "after replay entry")


@pytest.mark.crash
@pytest.mark.parametrize("step", STEPS)
def test_a_replay_that_is_killed_is_done_by_the_next_one(modern: Modern, step: str, tmp_path: Path) -> None:
    topic = loaded(modern, 20)  # one slice, so that no Spark is started
    home = tmp_path / "driver"
    home.mkdir()
    command = ["--settings", str(topic.settings), "replay", "clicks", "--from", "earliest", "--to", "latest"]
    killed = Driver.start(home, command, DriverOptions(), kill_at=step).wait()
    assert killed.code == -signal.SIGKILL, killed.errors
    assert topic.load().rows == 0
    assert topic.replay("earliest", "latest").changed == (step != "after replay entry")
    assert_whole(topic, 20)
