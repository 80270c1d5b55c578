"""What a log has lost is taken back by choice, and what was read is the topic's only if it is still the same one."""

from dataclasses import replace
from typing import Any, Literal
from unittest.mock import Mock, patch

import pytest

from kafka_io.errors import ConnectFailed, KafkaIOError, OffsetOutOfRange
from kafka_io.model import Bounds, BrokerPartition, EpochEnd, OffsetRange, TopicIds
from kafka_io.records.last_message import LastMessage
from pipelines.commit.replacement import CutChange
from pipelines.identity import truncation
from pipelines.identity.divergence import Divergence
from pipelines.identity.truncation import (
    LogComparison,
    check_incarnation,
    compare_logs,
    erased_again,
    erased_before,
    lost_offsets,
    take_back,
    vanished_partitions,
)
from pipelines.ledger.ledger import (
    CommitKind,
    LedgerEntry,
    RecordedChoice,
    TableState,
    TopicFindings,
    TopicIdentity,
)
from resources.errors import CommitRefused, PartitionsVanished, TopicRecreated
from resources.settings.choices import Choices

A = BrokerPartition(None, 0)
SAME = LogComparison(divergences={}, errors={}, all_same=True)


@pytest.mark.parametrize(
    ("earliest", "latest", "lost"),
    [
        (10, 12, (OffsetRange(A, 12, 20),)),
        (12, 12, (OffsetRange(A, 12, 20),)),
        (13, 12, ()),  # fault B14
        (12, 20, ()),
    ],
)
def test_the_table_has_more_than_a_log_that_became_shorter_also_if_the_log_is_empty(
    earliest: int, latest: int, lost: tuple[OffsetRange, ...]
) -> None:  # fault B03
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    state, bounds = TableState(topic=topic, covered={A: (0, 20)}), {A: Bounds(earliest=earliest, latest=latest)}
    assert lost_offsets(state, bounds, Choices(on_truncated="rewind"), SAME) == (lost, {})


@pytest.mark.parametrize("is_typed", [False, True])
def test_a_log_that_became_shorter_is_searched_although_a_cut_removed_its_last_message(*, is_typed: bool) -> None:
    """Otherwise a topic that was created again after the cut looks like one that was truncated (fault P11)."""
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="unknown")
    another = Divergence(offset=0, common=False)
    search = Mock(state=TableState(topic=topic, covered={A: (0, 20)}), run=Mock(return_value=another))
    search.has_bytes, search.with_expired.return_value = not is_typed, set()
    search.cluster.truncations.return_value = {}
    bounds = {A: Bounds(earliest=0, latest=12)}
    comparison = compare_logs(search, bounds, Choices(on_truncated="rewind"), loads_older=False, with_idle=False)
    assert comparison.divergences == ({} if is_typed else {A: another})


STORED, OTHER = LastMessage(offset=19, digest="table"), LastMessage(offset=19, digest="log")
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")
FAIL = Choices()


def search_of(
    answer: object,
    *,
    same_topic_id: bool = False,
    error: KafkaIOError | None = None,
    end: EpochEnd | None = None,
) -> Mock:
    """A search in a log that answers this for the last message, and for the end of the epoch of the table."""
    findings = TopicFindings(same_topic_id=same_topic_id)
    state = TableState(topic=CLICKS, covered={A: (0, 20)}, last_messages={A: STORED}, findings=findings)
    run = Mock(side_effect=error, return_value=Divergence(offset=5, common=True))
    search = Mock(state=state, run=run, has_bytes=True)
    search.cluster.last_messages.side_effect = lambda _, ranges: dict.fromkeys(ranges, answer)
    search.cluster.truncations.return_value = {A: end} if end else {}
    search.with_expired.return_value = set()
    return search


def compared(search: Mock, latest: int = 30, choices: Choices = FAIL) -> LogComparison:
    bounds = {A: Bounds(earliest=0, latest=latest)}
    return compare_logs(search, bounds, choices, loads_older=False, with_idle=False)


@pytest.mark.parametrize(
    ("search", "latest", "all_same"),
    [
        (search_of(STORED), 30, True),
        (search_of(STORED), 20, False),  # without news nothing is compared
        (search_of(OTHER), 30, False),
        (search_of(OffsetOutOfRange("gone")), 30, False),
        (search_of(ConnectFailed("away")), 30, False),
        (search_of(STORED), 19, False),
    ],
)
def test_a_log_is_that_of_the_table_only_if_it_was_compared_and_nothing_differs(
    search: Mock, latest: int, all_same: bool
) -> None:  # fault N05
    assert compared(search, latest).all_same == all_same


def test_a_log_that_differs_and_cannot_be_searched_may_be_another_topic_s_unless_its_id_is_the_same() -> None:
    error = ConnectFailed("away")
    with pytest.raises(ConnectFailed):
        compared(search_of(OTHER, error=error))
    assert compared(search_of(OTHER, error=error, same_topic_id=True)).errors == {A: error}
    # A log that became shorter shows no other message.
    shorter = compared(search_of(STORED, error=error), latest=19, choices=Choices(on_truncated="rewind"))
    assert shorter.errors == {A: error}


@pytest.mark.parametrize("choice", ["fail", "rewind"])
@pytest.mark.parametrize("answer", [OTHER, None])
def test_messages_of_a_leader_with_an_older_epoch_say_nothing_without_a_choice(
    choice: Literal["fail", "rewind"], answer: object
) -> None:  # faults B02, A03, P28
    """It may have been deposed: then its messages would show another log, and the topic would be loaded again."""
    search = search_of(answer, same_topic_id=True, end=EpochEnd(None, is_exact=False))
    search.run.return_value = another = Divergence(offset=0, common=False)
    search.state = replace(search.state, epochs={A: 2})
    bounds = {A: Bounds(earliest=0, latest=30, epoch=1)}
    choices = Choices(on_truncated=choice)
    comparison = compare_logs(search, bounds, choices, loads_older=False, with_idle=False)
    assert comparison.outdated == frozenset({A})
    assert not comparison.all_same
    assert comparison.divergences == ({} if choice == "fail" else {A: another})
    lost, errors = lost_offsets(search.state, bounds, choices, comparison)
    assert [*errors] == ([A] if choice == "fail" else [])
    assert not lost


@pytest.mark.parametrize(
    ("end", "has_message", "truncated"),
    [
        (EpochEnd(20), True, 20),
        (EpochEnd(20, is_exact=False), True, 20),
        (EpochEnd(25, is_exact=False), True, 20),
        (EpochEnd(12), True, None),  # fault E09
        (EpochEnd(12), False, 12),
    ],
)
def test_a_log_with_the_last_message_has_lost_what_is_behind_the_end_of_its_epoch(
    end: EpochEnd, has_message: bool, truncated: int | None
) -> None:
    search = search_of(STORED, end=end)
    search.has_message_at.return_value = has_message
    assert compared(search).truncated == ({} if truncated is None else {A: truncated})


def taken_back(**entry: Any) -> TableState:
    change = CutChange(state=TableState(topic=CLICKS, covered={A: (0, 20)}), ranges=(), run="r", commit="mine")
    after = Mock(commit="mine", sequence=4, state=TableState(topic=CLICKS, covered={A: (0, 12)}))
    after.configure_mock(**entry)
    with patch.object(truncation, "commit"):
        newest = Mock(entry=after if entry.get("is_there", True) else None)
        return take_back(Mock(newer=lambda _: newest), Mock(next_sequence=4), change)[1]


def test_a_load_continues_after_a_cut_only_if_the_cut_is_all_that_changed_the_table() -> None:
    assert taken_back().covered == {A: (0, 12)}
    for entry in ({"commit": "other"}, {"sequence": 5}, {"is_there": False}):
        with pytest.raises(CommitRefused, match="another run committed meanwhile"):
            taken_back(**entry)


def entry_of(kind: CommitKind, reason: str = "") -> LedgerEntry:
    """A commit by a choice that says this about erased rows."""
    choice = RecordedChoice.of("on_truncated", "rewind", OffsetRange(A, 5, 9), reason=reason)
    state = TableState(topic=CLICKS, covered={A: (0, 5)})
    return LedgerEntry(commit="c", run="r", kind=kind, sequence=1, ranges=(), state=state, choices=(choice,))


@pytest.mark.parametrize("last", [CommitKind.LOAD, CommitKind.REWIND])
def test_all_cuts_since_the_last_load_say_that_erased_rows_may_come_back(last: CommitKind) -> None:  # fault Y11
    cut, erasure = CommitKind.CUT, CommitKind.ERASE
    entries = [
        entry_of(erasure, "of another commit"),
        *(entry_of(cut, reason) for reason in ("two", "", "one")),
        entry_of(last),
        entry_of(cut, "loaded again"),
    ]
    table = Mock(entries=lambda _: enumerate(entries))
    assert list(erased_again(table, Mock(entry=entries[0]))) == ["two", "one"]


@pytest.mark.parametrize("entry", [None, entry_of(CommitKind.LOAD)])
def test_nothing_is_read_of_a_table_whose_newest_commit_is_a_load(entry: LedgerEntry | None) -> None:
    table = Mock()
    assert list(erased_again(table, Mock(entry=entry))) == []
    assert table.mock_calls == []


def test_a_table_from_which_rows_were_erased_says_that_a_new_topic_may_bring_them_back() -> None:  # fault Y11
    for kinds, sentences in (([CommitKind.LOAD, CommitKind.ERASE, CommitKind.LOAD], 1), ([CommitKind.LOAD] * 2, 0)):
        table = Mock(entries=lambda _, kinds=kinds: enumerate(map(entry_of, kinds)))
        assert len(list(erased_before(table, Mock()))) == sentences


def test_a_partition_that_vanished_is_down_in_0_7_and_lost_later() -> None:
    of_07 = BrokerPartition(0, 0)
    assert vanished_partitions({A: (0, 20)}, Mock(partitions=(A,)), Choices()) == []
    with pytest.raises(PartitionsVanished, match=r"not these, which the table holds: 0 \(loaded up to 20\)"):
        vanished_partitions({A: (0, 20)}, Mock(partitions=()), Choices())
    [waiting] = vanished_partitions({A: (0, 20)}, Mock(partitions=()), Choices(on_vanished="wait"))
    [down] = vanished_partitions({of_07: (0, 20)}, Mock(partitions=()), Choices())
    assert "its load continues at 20 when it is back" in waiting
    assert down.startswith("partition 0-0 is not registered")


def test_a_load_continues_with_the_event_time_that_its_cut_left() -> None:  # fault U20
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    state = TableState(topic=topic, covered={A: (0, 20)}, event_time=Mock())
    after = replace(state, covered={A: (0, 12)}, event_time=Mock())
    change = CutChange(state=state, ranges=(OffsetRange(A, 12, 20),), run="run")
    newest = Mock(entry=Mock(commit=change.commit, sequence=2, state=after))
    with patch.object(truncation, "commit"):
        _, continued = take_back(Mock(newer=lambda _: newest), Mock(next_sequence=2), change)
    assert (continued.covered, continued.event_time) == (after.covered, after.event_time)


def test_rows_of_another_incarnation_are_refused() -> None:
    planned = Mock(ids=TopicIds(topic_id="one"))
    check_incarnation(Mock(topic_at_leaders=lambda *_: Mock(ids=TopicIds(topic_id="one"))), planned, ())
    with pytest.raises(TopicRecreated, match="was deleted and created again while it was read"):
        check_incarnation(Mock(topic_at_leaders=lambda *_: Mock(ids=TopicIds(topic_id="two"))), planned, ())
    with pytest.raises(TopicRecreated, match="was deleted while it was read"):
        check_incarnation(Mock(topic_at_leaders=lambda *_: None), planned, ())
