"""A log without topic ids is recognised by the last message that was loaded from it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock, patch
from uuid import UUID

import pytest

from kafka_io.errors import OffsetOutOfRange
from kafka_io.messages.fetch import FetchRequest
from kafka_io.model import BrokerPartition
from kafka_io.records.last_message import LastMessage
from kafka_io.wire.types import NULL_UUID
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.identity.divergence import DivergenceSearch
from pipelines.layout.conditions import parse_condition
from pipelines.ledger.ledger import CommitKind
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load import load as loading
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.plan.positions import NamedPosition
from pipelines.plan.window import LoadWindow
from resources.errors import LakeUnavailable
from resources.progress import Progress
from resources.settings.choices import Choices
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding, numbered, table, values
from tests.fakes.typed import TypedTopic
from tests.pipelines.identity.test_holes import answers_policy
from tests.pipelines.load.test_choices import load
from tests.pipelines.load.test_run_target import load as load_fetching
from tests.simulation.brokers import SimCluster
from tests.simulation.sim_log import ERAS, SimLog
from tests.simulation.test_found import SimTopic

P0 = BrokerPartition(None, 0)


@pytest.fixture
def fake() -> FakeCluster:
    """A cluster below 2.8 without ZooKeeper: nothing but the messages identifies its topic."""
    return FakeCluster(logs={0: holding(0, 20, epoch=-1)}, topic_id=NULL_UUID)


def test_a_log_that_goes_on_is_loaded(fake: FakeCluster, tmp_path: Path) -> None:  # fault P11
    with fake:
        assert load(fake, tmp_path).error is None
        fake.logs[0] = holding(0, 30, epoch=-1)
        assert load(fake, tmp_path).error is None
        assert values(tmp_path) == numbered(0, 30)
        entry = table(tmp_path).snapshot().entry
        assert entry is not None
        assert entry.state.last_messages[P0].offset == 29


def test_a_load_without_news_fetches_nothing(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        before = len(fake.heard(FetchRequest.API.key))
        assert load(fake, tmp_path).rows == 0
        assert len(fake.heard(FetchRequest.API.key)) == before


def test_a_last_message_that_is_the_first_of_the_log_is_compared(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(19, 40, incarnation="second", epoch=-1)
        assert str(load(fake, tmp_path).error).startswith("TopicRecreated: ")


@pytest.mark.slow
def test_a_topic_without_an_id_that_is_created_again_is_noticed_until_a_choice(
    fake: FakeCluster, tmp_path: Path
) -> None:  # faults P08, P11
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(0, 40, incarnation="second", epoch=-1)
        for _ in range(2):
            error = load(fake, tmp_path).error
            assert error is not None
            assert error.startswith("TopicRecreated: ")
            assert "keeps the table's 20 rows" in error
        assert load(fake, tmp_path, on_recreated="restart").error is None
        assert load(fake, tmp_path).error is None
        assert values(tmp_path) == [*numbered(0, 20), *numbered(0, 40, "second")]


@pytest.mark.slow
@pytest.mark.parametrize(("choice", "begin"), [("restart", 0), ("adopt", 20)])
def test_a_choice_about_a_topic_that_was_created_again_holds_for_a_log_that_looks_truncated(
    choice: str, begin: int, fake: FakeCluster, tmp_path: Path
) -> None:  # fault P11
    fake.logs[1] = replace(holding(0, 20, epoch=-1), leader=1)
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(0, 40, incarnation="second", epoch=-1)
        new = holding(10, 40, incarnation="second", epoch=-1)
        fake.logs[1] = replace(new, entries=[*holding(0, 10, epoch=-1).entries, *new.entries], start=0, leader=1)
        assert load(fake, tmp_path, on_recreated=choice).error is None
        assert values(tmp_path) == [*numbered(0, 20), *numbered(begin, 40, "second")]
        assert values(tmp_path, 1)[-20:] == numbered(20, 40, "second")


@pytest.mark.slow
def test_a_log_that_was_truncated_and_written_again_is_taken_back_to_where_it_diverged(
    fake: FakeCluster, tmp_path: Path
) -> None:  # faults P11, P12
    with fake:
        load(fake, tmp_path)
        kept, new = holding(0, 10, epoch=-1), holding(10, 30, incarnation="second", epoch=-1)
        new.entries, new.start = [*kept.entries, *new.entries], 0
        fake.logs[0] = new
        refused = load(fake, tmp_path).error
        assert refused is not None
        assert refused.startswith("LogTruncated: offsets [10, 20) are in the table")
        assert load(fake, tmp_path, on_truncated="rewind").error is None
        assert values(tmp_path) == [*numbered(0, 10), *numbered(10, 30, "second")]


@pytest.mark.slow
@pytest.mark.parametrize("new", [0, 20])
def test_a_truncated_log_of_a_typed_table_is_taken_back_to_the_last_commit_that_it_has(
    new: int, fake: FakeCluster, tmp_path: Path
) -> None:  # faults P11, P12
    """A typed table lacks the bytes of its messages, but each commit has the digest of one."""
    topic = TypedTopic(fake=fake, folder=tmp_path, format_={"format": "text"})
    with fake:
        answers_policy(fake, "delete")
        for end in (5, 10, 20):
            fake.logs[0] = holding(0, end, epoch=-1)
            assert topic.load().error is None
        kept, later = holding(0, 15, epoch=-1), holding(15, 15 + new, incarnation="second", epoch=-1)
        fake.logs[0] = replace(later, entries=kept.entries + later.entries if new else kept.entries, start=0)
        refused = topic.load().error or ""
        assert refused.startswith("LogTruncated: offsets [10, 20)" if new else "CursorAheadOfLog: ")
        assert topic.load(choices=Choices(on_truncated="rewind")).error is None
        assert [row["value"] for row in topic.rows("value")] == [*numbered(0, 15), *numbered(15, 15 + new, "second")]
        assert topic.deep().proven


ERASED = numbered(12, 13)[0]


def erased_and_truncated(topic: TypedTopic, fake: FakeCluster) -> EraseRequest:
    """Load 20 records, erase the one at offset 12, and write the log again from offset 15 on; returns the request."""
    answers_policy(fake, "delete")
    for end in (10, 20):
        fake.logs[0] = holding(0, end, epoch=-1)
        assert topic.load().error is None
    request = EraseRequest(table=topic.table, condition=parse_condition(f"value = '{ERASED}'"), run="erasure")
    assert erase(request).rows == 1
    kept, later = holding(0, 15, epoch=-1), holding(15, 30, incarnation="second", epoch=-1)
    fake.logs[0] = replace(later, entries=kept.entries + later.entries, start=0)
    return request


def test_a_load_warns_if_a_log_may_bring_erased_rows_back(fake: FakeCluster, tmp_path: Path) -> None:  # fault Y11
    """The rows after the last commit that the log has are taken back, and the log may still have erased ones there."""
    topic = TypedTopic(fake=fake, folder=tmp_path, format_={"format": "text"})
    with fake:
        request = erased_and_truncated(topic, fake)
        load = topic.load(choices=Choices(on_truncated="rewind"))
        assert load.error is None
        warning = "erased rows of partition 0 [10, 20): 1; the log may still have them"
        assert [text for text in load.warnings if text.startswith(warning)]
        assert erase(request).rows == 1
        assert topic.load(choices=Choices(on_truncated="rewind")).warnings == ()


def test_each_load_warns_of_erased_rows_until_one_after_the_cut_has_committed(
    fake: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault Y11
    """A load may be killed between its cut and its report. The next one fetches the erased rows, and says so."""
    topic, rewind = TypedTopic(fake=fake, folder=tmp_path, format_={"format": "text"}), Choices(on_truncated="rewind")
    with fake:
        request = erased_and_truncated(topic, fake)
        with monkeypatch.context() as killing:
            killing.setattr(loading, "plan_next", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                topic.load(choices=rewind)
            killing.setattr(loading, "plan_next", Mock(side_effect=LakeUnavailable("no answer")))
            [failing] = topic.load(choices=rewind).warnings
        [entry, *_] = (entry for _, entry in topic.table.entries(topic.table.snapshot()))
        warning = "erased rows of partition 0 [10, 20): 1; the log may still have them"
        assert (entry.kind, [choice.reason.startswith(warning) for choice in entry.choices]) == (CommitKind.CUT, [True])
        other = parse_condition(f"value = '{numbered(3, 4)[0]}'")
        assert erase(replace(request, condition=other)).rows == 1
        [text] = topic.load(choices=rewind).warnings
        assert (text.startswith(warning), failing) == (True, text)
        assert ERASED in [row["value"] for row in topic.rows("value")]
        assert topic.load(choices=rewind).warnings == ()


def test_the_load_of_a_topic_that_was_created_again_says_that_erased_rows_may_come_back(
    fake: FakeCluster, tmp_path: Path
) -> None:  # fault Y11
    """The brokers may have been made again from a copy, so the new topic can have the records of the former one."""
    fake.topic_id = UUID(int=1)
    topic, restart = TypedTopic(fake=fake, folder=tmp_path, format_={"format": "text"}), Choices(on_recreated="restart")
    request = EraseRequest(table=topic.table, condition=parse_condition(f"value = '{ERASED}'"), run="erasure")
    with fake:
        assert topic.load().error is None
        fake.topic_id = UUID(int=2)
        assert topic.load(choices=restart).warnings == ("on_recreated = restart: partition 0 [0, 0)",)
        assert erase(request).rows == 2
        fake.topic_id = UUID(int=3)
        [warning, _] = topic.load(choices=restart).warnings
        assert warning.startswith("rows of former topics of this name were erased; if the new topic has their records")
        assert erase(request).rows == 1
        assert topic.load(choices=restart).warnings == ()


def test_rows_of_a_log_that_was_created_again_during_the_fetch_are_not_committed(
    fake: FakeCluster, tmp_path: Path
) -> None:  # fault P11
    def fetch(tasks: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
        fake.logs[0] = holding(0, 40, incarnation="second", epoch=-1)
        return fetch_here(tasks, on_progress)

    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(0, 30, epoch=-1)
        error = load_fetching(fake, tmp_path, fetch=fetch).error
    assert error is not None
    assert error.startswith("TopicRecreated: the log of partition 0 has another message at offset 19 than the table")
    assert values(tmp_path) == numbered(0, 20)


def test_a_last_message_that_expired_contradicts_nothing(fake: FakeCluster, tmp_path: Path) -> None:  # fault P11
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(20, 40, epoch=-1)
        assert load(fake, tmp_path).error is None
        assert values(tmp_path) == numbered(0, 40)


def sim_010(count: int, offsets_per_record: int = 1) -> tuple[SimTopic, SimLog]:
    """A topic without ids and epochs, whose records are loaded. A record may have several offsets, with markers."""
    sim = SimTopic(ERAS[1])
    log = sim.cluster.logs[sim.id]
    sim.cluster.through_zookeeper = False
    log.grow(range(count), lambda: offsets_per_record)
    assert sim.load(Choices()).error is None
    return sim, log


def test_a_last_message_that_cannot_be_read_any_more_contradicts_nothing() -> None:  # faults P11, N03
    sim, log = sim_010(10)
    log.damage(9, 1, "on_corrupt")
    log.grow(range(10, 15), lambda: 1)
    assert sim.load(Choices()).error is None
    assert sorted(row.payload for row in sim.store.rows) == list(range(15))


def test_compacted_messages_do_not_hide_where_a_log_diverged() -> None:  # fault P11
    sim, log = sim_010(100)
    sim.cluster.compacts = True
    log.compact([*range(10), *range(48, 55)])
    log.cut(60, 1)
    log.grow(range(200, 280), lambda: 1)
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(60), *range(200, 280)]


@pytest.mark.parametrize("grown", [0, 5])
@pytest.mark.parametrize("compacted", [range(20, 80), range(90), range(5, 90)])
def test_rows_whose_messages_were_only_compacted_are_not_taken_back(compacted: range, grown: int) -> None:  # fault P12
    sim, log = sim_010(100)
    sim.cluster.compacts = True
    log.compact(compacted)
    log.cut(90 + bool(grown), 1)
    log.grow(range(200, 200 + grown), lambda: 1)
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(log.cuts[0].offset), *range(200, 200 + grown)]


def test_a_log_that_became_shorter_and_has_no_message_of_the_table_left_was_truncated() -> None:  # faults B03, P11
    sim, log = sim_010(10, offsets_per_record=10)
    log.expire(95)
    log.cut(97, 1)
    assert (sim.load(Choices()).error or "").startswith("CursorAheadOfLog")
    assert sim.load(Choices(on_truncated="rewind")).error is None
    entry = sim.store.snapshot().entry
    assert entry is not None
    assert entry.covered[sim.id] == (0, 97)


def sim_07() -> tuple[SimTopic, SimLog]:
    """A topic of 0.7 with ten messages of 20 bytes, which are loaded."""
    sim = SimTopic(ERAS[0])
    log = sim.cluster.logs[sim.id]
    log.grow(range(10), lambda: 20)
    assert sim.load(Choices()).error is None
    return sim, log


def test_a_log_of_0_7_that_is_created_again_under_its_node_is_noticed_until_a_choice() -> None:  # faults P11, N11
    sim, _ = sim_07()
    sim.cluster.replace_logs()
    sim.cluster.logs[sim.id].grow(range(100, 130), lambda: 17)
    for _ in range(2):
        assert (sim.load(Choices()).error or "").startswith("TopicRecreated: ")
    assert sim.load(Choices(on_recreated="restart")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(10), *range(100, 130)]


@pytest.mark.parametrize("kept", [0, 5])
@pytest.mark.parametrize("loaded", [0, 10])
@pytest.mark.parametrize("end", [80, 150])
def test_a_log_that_begins_before_offsets_which_expired_earlier_is_another_log(
    kept: int, loaded: int, end: int
) -> None:  # faults B07, P11
    """The table may have no message at an offset that the log has, so that only the log's beginning shows it."""
    sim, log = sim_010(loaded)
    log.grow(range(loaded, 100), lambda: 1)
    log.expire(100 - kept)
    assert sim.load(Choices(on_expired="skip", on_truncated="rewind")).rows == kept
    sim.cluster.replace_logs()
    log = sim.cluster.logs[sim.id]
    log.grow(range(100, 100 + end), lambda: 1)
    log.expire(50)
    choices = Choices(on_truncated="rewind")
    assert (sim.load(choices).error or "").startswith("TopicRecreated: ")
    choices = Choices(on_truncated="rewind", on_recreated="restart", on_expired="skip")
    assert sim.load(choices).error is None
    assert sorted(row.payload for row in sim.store.rows)[loaded + kept :] == [*range(150, 100 + end)]


@pytest.mark.parametrize(
    ("end", "reason"),
    [(80, "TopicRecreated: .* before offset 50"), (20, "CursorAheadOfLog: "), (0, "CursorAheadOfLog: ")],
)
def test_what_expired_is_no_gap_if_the_log_is_created_again_before_its_messages_are_read(
    end: int, reason: str
) -> None:  # faults B06, B07, P11
    sim, _ = sim_010(0)
    sim.cluster.add_partition()
    other = BrokerPartition(None, 1)
    sim.cluster.logs[sim.id].grow(range(50), lambda: 1)
    sim.cluster.logs[sim.id].expire(50)
    sim.cluster.logs[other].grow(range(50, 60), lambda: 1)

    def recreate() -> None:
        sim.cluster.replace_logs()
        sim.cluster.logs[sim.id].grow(range(100, 100 + end), lambda: 1)
        sim.cluster.logs[other].grow(range(50, 60), lambda: 1)

    assert re.match(reason, sim.load(Choices(on_expired="skip"), planned=recreate).error or "")
    assert sim.load(Choices()).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(50, 60), *range(100, 100 + end)]


def test_what_expired_before_another_log_was_adopted_does_not_stop_the_topic_again() -> None:  # faults B07, P11
    sim, log = sim_010(10)
    log.grow(range(10, 100), lambda: 1)
    log.expire(100)
    sim.cluster.add_partition()
    assert sim.load(Choices(on_expired="skip")).error is None
    sim.cluster.replace_logs()
    other = next(log for id_, log in sim.cluster.logs.items() if id_ != sim.id)
    sim.cluster.logs[sim.id].grow(range(100, 200), lambda: 1)
    other.grow(range(200, 220), lambda: 1)
    assert (sim.load(Choices()).error or "").startswith("TopicRecreated: ")
    assert sim.load(Choices(on_recreated="adopt")).error is None
    assert sim.load(Choices()).error is None
    sim.cluster.logs[sim.id].grow(range(300, 310), lambda: 1)
    assert sim.load(Choices()).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(10), *range(200, 220), *range(300, 310)]


def test_nothing_is_loaded_while_nobody_knows_whether_a_log_that_differs_was_only_truncated() -> None:  # fault P11
    """A log may expire while it is searched. The topic may be another one, also in partitions without a cursor."""
    sim, _ = sim_07()
    sim.cluster.add_partition()
    sim.cluster.replace_logs()
    for log in sim.cluster.logs.values():
        log.grow(range(100, 130), lambda: 17)
    with patch.object(DivergenceSearch, "run", side_effect=OffsetOutOfRange("the offset has expired")):
        assert (sim.load(Choices()).error or "").startswith("OffsetOutOfRange: ")
    assert (sim.load(Choices()).error or "").startswith("TopicRecreated: ")
    assert sorted(row.payload for row in sim.store.rows) == [*range(10)]


def test_another_message_in_an_idle_partition_does_not_stop_the_others_for_ever() -> None:  # faults P11, P12
    sim, log = sim_07()
    sim.cluster.add_partition()
    idle = sim.cluster.logs[BrokerPartition(1, 0)]
    idle.grow(range(20, 30), lambda: 20)
    assert sim.load(Choices()).error is None
    idle.cut(100, 1)
    idle.grow(range(40, 45), lambda: 20)
    log.grow(range(10, 15), lambda: 20)
    assert (sim.load(Choices()).error or "").startswith("LogTruncated: offsets [100, 200)")
    log.grow(range(15, 18), lambda: 20)
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(18), *range(20, 25), *range(40, 45)]


@pytest.mark.parametrize("grown", [2, 20])
def test_a_cut_log_of_0_7_is_taken_back_to_where_it_diverged(grown: int) -> None:  # fault P12
    sim, log = sim_07()
    log.cut(100, 1)
    log.grow(range(50, 50 + grown), lambda: 23)
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(5), *range(50, 50 + grown)]


def sim_upgraded() -> tuple[SimTopic, SimLog]:
    """A topic without ids whose partition 0 has news, and the log of its loaded partition 1; then it has an id."""
    sim, log = sim_010(10)
    sim.cluster.add_partition()
    other = sim.cluster.logs[BrokerPartition(None, 1)]
    other.grow(range(20, 30), lambda: 1)
    assert sim.load(Choices()).error is None
    log.grow(range(10, 15), lambda: 1)
    sim.cluster.upgrade()
    return sim, other


@pytest.mark.parametrize(
    ("cut", "grown", "reason"), [(5, 15, r"LogTruncated: offsets \[5, 10\)"), (5, 0, "CursorAheadOfLog: ")]
)
def test_a_topic_id_is_not_learned_while_a_truncation_waits_for_a_choice(
    cut: int, grown: int, reason: str
) -> None:  # faults N05, P11, P12
    sim, other = sim_upgraded()
    other.cut(cut, 1)
    other.grow(range(40, 40 + grown), lambda: 1)
    assert re.match(reason, sim.load(Choices()).error or "")
    assert sorted(row.payload for row in sim.store.rows) == [*range(15), *range(20, 30)]
    sim.cluster.logs[sim.id].grow(range(15, 18), lambda: 1)
    other.grow(range(60, 70), lambda: 1)
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sim.load(Choices()).error is None
    rows = [*range(18), *range(20, 25), *range(40, 40 + grown), *range(60, 70)]
    assert sorted(row.payload for row in sim.store.rows) == rows


def test_a_truncation_is_noticed_in_a_partition_that_was_idle_since_the_brokers_had_no_epochs() -> None:  # fault B04
    sim, other = sim_upgraded()
    assert sim.load(Choices()).error is None
    other.cut(5, 1)
    other.grow(range(40, 60), lambda: 1)
    assert (sim.load(Choices()).error or "").startswith("LogTruncated: offsets [5, 10)")
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(15), *range(20, 25), *range(40, 60)]


def test_a_backfill_compares_all_logs_before_it_fetches() -> None:  # faults P11, N07
    sim, log = sim_010(0)
    sim.cluster.add_partition()
    other = sim.cluster.logs[BrokerPartition(None, 1)]
    for number, grown in enumerate((log, other)):
        grown.grow(range(20 * number, 20 * number + 10), lambda: 1)
    assert sim.load(Choices(), window=LoadWindow(since=NamedPosition.LATEST)).error is None
    other.grow(range(30, 40), lambda: 1)
    assert sim.load(Choices()).error is None
    other.cut(15, 1)
    other.grow(range(50, 55), lambda: 1)
    refused = sim.load(Choices(), window=LoadWindow(since=NamedPosition.EARLIEST)).error or ""
    assert refused.startswith("LogTruncated: offsets [15, 20)")
    assert {*range(10)} <= {row.payload for row in sim.store.rows}


@pytest.mark.parametrize("sends_more", [False, True])
def test_nothing_is_loaded_while_an_empty_log_may_be_another_one(*, sends_more: bool) -> None:  # faults B03, P11
    sim, _ = sim_010(10)
    sim.cluster.add_partition()
    assert sim.load(Choices()).error is None
    sim.cluster.replace_logs()
    other = sim.cluster.logs[BrokerPartition(None, 1)]
    other.grow(range(20, 25 if sends_more else 20), lambda: 1)
    assert (sim.load(Choices()).error or "").startswith("CursorAheadOfLog: ")
    assert sorted(row.payload for row in sim.store.rows) == [*range(10)]
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(20, 25 if sends_more else 20)]


def test_a_topic_id_is_not_learned_while_a_partition_has_no_leader() -> None:  # faults N05, P11
    """The log of the leaderless partition may be another one, which nothing but its messages shows."""
    sim, _ = sim_upgraded()
    sim.cluster.replace_logs()
    other = BrokerPartition(None, 1)
    for id_, begin in ((sim.id, 0), (other, 100)):
        sim.cluster.logs[id_].grow(range(begin, begin + 15), lambda: 1)
    sim.cluster.leaderless.add(other)
    sim.load(Choices())
    sim.cluster.leaderless.clear()
    assert (sim.load(Choices()).error or "").startswith("TopicRecreated: ")
    assert sorted(row.payload for row in sim.store.rows) == [*range(15), *range(20, 30)]


def test_a_topic_id_is_learned_when_all_partitions_have_been_compared() -> None:  # fault N05
    sim, _ = sim_upgraded()
    sim.cluster.leaderless.add(BrokerPartition(None, 1))
    sim.load(Choices())
    sim.cluster.leaderless.clear()
    for expected in ("", sim.cluster.topic_id):
        entry = sim.store.snapshot().entry
        assert entry is not None
        assert (entry.state.ids.topic_id, bool(entry.state.last_messages)) == (expected, True)  # fault A02
        sim.cluster.logs[sim.id].grow(range(15, 18), lambda: 1)
        assert sim.load(Choices()).error is None


@pytest.mark.parametrize("are_equal", [False, True])
def test_only_messages_that_differ_show_that_a_log_of_0_7_was_created_again(
    monkeypatch: pytest.MonkeyPatch, *, are_equal: bool
) -> None:  # fault A15: docs/exactly-once.md#when-does-it-not-hold
    if are_equal:
        monkeypatch.setattr(SimCluster, "message", lambda _, offset, __: LastMessage(offset=offset, digest="a beat"))
    sim, _ = sim_07()
    sim.cluster.replace_logs()
    sim.cluster.logs[sim.id].grow(range(100, 130), lambda: 20)
    assert (sim.load(Choices()).error is None) == are_equal
