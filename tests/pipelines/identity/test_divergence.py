"""A log is compared with the table by single messages: the last one, or those of a binary search."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import Mock, patch

import pytest

from kafka_io.errors import ConnectFailed, Corrupt, KafkaIOError, OffsetOutOfRange, Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from kafka_io.records.last_message import LastMessage
from pipelines.identity.divergence import (
    Divergence,
    DivergenceSearch,
    check_expired,
    check_same_logs,
    compare_last_messages,
    unexplained_beginnings,
)
from pipelines.ledger.committed_range import EXPIRED, CommittedRange, ExactCause
from pipelines.ledger.ledger import CommitKind, LedgerEntry, RecordedChoice, TableState, TopicFindings, TopicIdentity
from resources.errors import CursorAheadOfLog, TopicRecreated

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
IN_BYTES = BrokerPartition(7, 0)
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")
STORED = LastMessage(offset=19, digest="table")


def state_of(*, same_topic_id: bool = False) -> TableState:
    findings = TopicFindings(same_topic_id=same_topic_id)
    return TableState(topic=CLICKS, covered={A: (0, 20)}, last_messages={A: STORED}, findings=findings)


def answering(answer: object) -> Mock:
    """A cluster that gives this answer for each message."""
    return Mock(last_messages=Mock(side_effect=lambda _, ranges: dict.fromkeys(ranges, answer)))


@pytest.mark.parametrize(
    ("answer", "differing", "is_gone", "is_error"),
    [
        (STORED, {}, False, False),
        (LastMessage(offset=19, digest="log"), {A: 19}, False, False),
        (LastMessage(offset=20, digest="log"), {}, False, False),  # the next message of a log that was compacted
        (OffsetOutOfRange("gone"), {}, True, False),
        (ConnectFailed("away"), {}, False, True),
    ],
)
def test_a_message_that_expired_or_was_compacted_contradicts_nothing_and_an_error_is_no_answer(
    answer: object, differing: Mapping[BrokerPartition, int], is_gone: bool, is_error: bool
) -> None:
    bounds = {A: Bounds(earliest=0, latest=30)}
    for same_topic_id in (False, True):  # faults A01, A02: a topic id says nothing about the content of a log
        state = state_of(same_topic_id=same_topic_id)
        assert compare_last_messages(answering(answer), state, bounds, with_idle=False) == (
            {A} if answer == STORED else set(),
            differing,
            {A} if is_gone else set(),
            {A: answer} if is_error else {},
        )


@pytest.mark.parametrize(("latest", "offset"), [(20, 19), (30, 19), (19, 19), (10, 10)])
def test_a_log_that_was_read_must_still_have_the_last_message(latest: int, offset: int) -> None:
    bounds = {A: Bounds(earliest=0, latest=latest)}
    for same_topic_id in (False, True):
        with pytest.raises(TopicRecreated, match=f"another message at offset {offset} than the table"):
            check_same_logs(
                answering(LastMessage(offset=19, digest="log")), state_of(same_topic_id=same_topic_id), bounds
            )


def test_a_log_with_the_last_message_is_the_same() -> None:
    check_same_logs(answering(STORED), state_of(), {A: Bounds(earliest=0, latest=20)})
    with pytest.raises(ConnectFailed):
        check_same_logs(answering(ConnectFailed("away")), state_of(), {A: Bounds(earliest=0, latest=20)})


CORRUPT_AT_5 = Corrupt("the checksum is wrong", Where(offset=5))
EXPIRED_BEFORE_10 = OffsetRange(A, 0, 10)


def beginning_at_5(first: object, *, latest: int = 30) -> Mock:
    """A cluster whose log begins at offset 5, with this answer for its first message; an empty range has no message."""

    def last_messages(_: str, ranges: Mapping[BrokerPartition, OffsetRange]) -> object:
        return {partition: first if offsets.size else None for partition, offsets in ranges.items()}

    bounds = {A: Bounds(earliest=5, latest=latest)}
    return Mock(bounds=lambda *_: bounds, last_messages=Mock(side_effect=last_messages))


@pytest.mark.parametrize(
    "first", [LastMessage(offset=5, digest="log"), LastMessage(offset=9, digest="log"), CORRUPT_AT_5]
)
def test_a_log_with_a_message_before_the_end_of_what_expired_was_created_again(first: object) -> None:
    """A message that cannot be read is there, too."""
    with pytest.raises(TopicRecreated, match="messages before offset 10, which had expired"):
        check_expired(beginning_at_5(first), state_of(), [EXPIRED_BEFORE_10])


@pytest.mark.parametrize("first", [LastMessage(offset=10, digest="log"), None, OffsetOutOfRange("gone")])
def test_a_log_whose_first_message_is_after_what_expired_is_the_same(first: object) -> None:  # fault B14
    """The earliest offset in the bounds is below: the messages there were compacted, or the answer is wrong."""
    cluster = beginning_at_5(first)
    check_expired(cluster, state_of(), [EXPIRED_BEFORE_10])
    assert cluster.last_messages.call_count == 1


def test_a_log_that_begins_at_the_end_of_what_expired_is_the_same() -> None:
    """The first message need not be readable."""
    check_expired(beginning_at_5(CORRUPT_AT_5), state_of(), [OffsetRange(A, 0, 5)])


def test_a_log_that_ends_before_the_end_of_what_expired_was_truncated_or_created_again() -> None:
    with pytest.raises(CursorAheadOfLog, match="ends at 9, but records up to 10 had expired"):
        check_expired(beginning_at_5(None, latest=9), state_of(), [EXPIRED_BEFORE_10])
    check_expired(beginning_at_5(None, latest=10), state_of(), [EXPIRED_BEFORE_10])


def test_what_expired_is_not_certain_if_a_broker_does_not_answer() -> None:
    without_bounds = Mock(bounds=lambda *_: {A: ConnectFailed("away")})
    for cluster in (without_bounds, beginning_at_5(ConnectFailed("away"))):
        with pytest.raises(ConnectFailed):
            check_expired(cluster, state_of(), [EXPIRED_BEFORE_10])


@pytest.mark.parametrize(
    ("earliest", "covered", "message", "is_unexplained"),
    [
        (14, (0, 20), 14, False),
        (15, (0, 20), 14, True),
        (19, (0, 20), 14, True),
        (20, (0, 20), 14, False),
        (0, (0, 20), None, True),
        (15, (20, 20), None, False),  # nothing is in the table yet
    ],
)
def test_a_log_that_begins_after_the_last_message_and_before_the_cursor_lacks_an_explanation(
    earliest: int, covered: tuple[int, int], message: int | None, is_unexplained: bool
) -> None:
    messages = {} if message is None else {A: LastMessage(offset=message, digest="table")}
    state = replace(state_of(), covered={A: covered}, last_messages=messages)
    bounds = {A: Bounds(earliest=earliest, latest=30), B: Bounds(earliest=0, latest=30)}
    assert unexplained_beginnings(state, bounds) == ({A: bounds[A]} if is_unexplained else {})


ADOPTED = RecordedChoice.of("on_recreated", "adopt", OffsetRange(A, 0, 0))
OTHER_CHOICE = RecordedChoice.of("on_unreadable", "skip", OffsetRange(A, 15, 16))


@pytest.mark.parametrize(
    ("newest_choices", "found"),
    [((), {A}), ((OTHER_CHOICE,), {A}), ((ADOPTED,), set()), ((OTHER_CHOICE, ADOPTED), set())],
)
def test_what_expired_before_the_user_adopted_another_log_says_nothing_about_this_one(
    newest_choices: tuple[RecordedChoice, ...], found: set[BrokerPartition]
) -> None:
    expired = CommittedRange(offsets=EXPIRED_BEFORE_10, gaps={EXPIRED: 10})
    loaded = CommittedRange(offsets=OffsetRange(A, 10, 20), rows=10)
    older, newest = (
        replace(commit(committed.offsets.stop, 0, ""), ranges=(committed,), choices=choices)
        for committed, choices in ((expired, ()), (loaded, newest_choices))
    )
    search = DivergenceSearch(
        cluster=beginning_at_5(LastMessage(offset=5, digest="log")),
        table=Mock(entries=lambda _: [(2, newest), (1, older)]),
        snapshot=Mock(),
        state=state_of(),
    )
    assert search.with_expired({A: Bounds(earliest=5, latest=30)}) == found


def search_in(
    log_of: Mapping[str, int],
    *,
    error: KafkaIOError | None = None,
    is_typed: bool = False,
    compacted: Collection[int] = (),
    corrupt: Collection[int] = (),
    stops: tuple[int, ...] = (10, 20),
    partition: BrokerPartition = A,
    erased: Collection[int] = (),
) -> DivergenceSearch:
    """A search in ranges of the partition without holes, which end at `stops`; their `erased` offsets have no row.

    The log has other messages from `other` on, and none from `end` on. It lacks those at `compacted` offsets, and those
    at `corrupt` offsets cannot be read.
    """
    edges = [*((partition, *edge) for edge in pairwise((0, *stops))), (B, 0, 50)]
    ranges = tuple(
        CommittedRange(
            offsets=OffsetRange(*edge),
            rows=len(set(range(*edge[1:])).difference(erased)),
            exact={ExactCause.ERASED: Mock()} if set(range(*edge[1:])).intersection(erased) else {},
        )
        for edge in edges
    )
    state = TableState(topic=CLICKS, covered={partition: (0, 20), B: (0, 50)})
    entry = LedgerEntry(commit="c", run="r", kind=CommitKind.LOAD, sequence=1, ranges=ranges, state=state)
    log = Mock(
        entries=lambda _: [(1, entry)],
        row_offsets=lambda _, committed: sorted(
            set(range(committed.offsets.start, committed.offsets.stop)).difference(erased)
        ),
        message=lambda _, __, offset: LastMessage(offset=offset, digest="table"),
    )

    def message(offset: int) -> LastMessage | KafkaIOError | None:
        if offset >= log_of.get("end", 100):
            return OffsetOutOfRange("gone")
        while offset in compacted:
            offset += 1
        if offset >= log_of.get("end", 100):
            return None
        if offset in corrupt:
            return Corrupt("the checksum is wrong", Where(offset=offset))
        return LastMessage(offset=offset, digest="log" if offset >= log_of.get("other", 100) else "table")

    def last_messages(_: str, wanted: Mapping[BrokerPartition, OffsetRange]) -> object:
        return {partition: error or message(offsets.start) for partition, offsets in wanted.items()}

    cluster, snapshot = Mock(last_messages=last_messages), Mock(layout=Mock(is_typed=is_typed))
    return DivergenceSearch(cluster=cluster, table=log, snapshot=snapshot, state=state_of())


@pytest.mark.parametrize(
    ("log_of", "earliest", "divergence"),
    [
        *(({"other": offset}, 0, Divergence(offset=offset, common=True)) for offset in (1, 5, 10, 11, 15, 19)),
        ({"other": 0}, 0, Divergence(offset=0, common=False)),
        ({}, 0, Divergence(offset=20, common=True)),
        ({"other": 12}, 12, Divergence(offset=12, common=False)),
        ({"other": 13}, 12, Divergence(offset=13, common=True)),
        ({"other": 0}, 10, Divergence(offset=10, common=False)),
        # All rows expired from the log. Nothing is compared, so nothing shows that it is another log.
        ({}, 20, Divergence(offset=20, common=True)),
    ],
)
def test_the_search_finds_the_first_message_that_the_log_does_not_have(
    log_of: Mapping[str, int], earliest: int, divergence: Divergence
) -> None:
    assert search_in(log_of).run(A, Bounds(earliest=earliest, latest=20)) == divergence


@pytest.mark.parametrize("hides", ["compacted", "corrupt"])
@pytest.mark.parametrize(
    ("other", "hidden", "stops", "divergence"),
    [
        (10, range(10), (10, 20), Divergence(offset=10, common=False)),
        (10, range(5, 10), (10, 20), Divergence(offset=10, common=True)),
        (16, range(15), (20,), Divergence(offset=16, common=True)),
        (19, range(12, 17), (5, 20), Divergence(offset=19, common=True)),
        (100, range(20), (10, 20), Divergence(offset=20, common=False)),
    ],
)
def test_messages_that_the_log_does_not_show_are_not_taken_back(
    hides: str, other: int, hidden: Collection[int], stops: tuple[int, ...], divergence: Divergence
) -> None:  # fault P11
    search = search_in({"other": other, "end": 20}, **{hides: hidden}, stops=stops)  # type: ignore[arg-type]
    assert search.run(A, Bounds(earliest=0, latest=20), other_at=19 if other < 20 else 20) == divergence


@pytest.mark.parametrize("hides", ["compacted", "corrupt"])
def test_a_search_asks_for_few_of_many_messages_that_the_log_does_not_show(hides: str) -> None:
    log_of, hidden = {"other": 20_000, "end": 10_000}, range(10, 9_990)
    search = search_in(log_of, **{hides: hidden}, stops=(10_000,))  # type: ignore[arg-type]
    search = replace(search, state=replace(search.state, covered={A: (0, 10_000)}))
    with patch.object(search.cluster, "last_messages", side_effect=search.cluster.last_messages) as asked:
        assert search.run(A, Bounds(earliest=0, latest=10_000)) == Divergence(offset=10_000, common=True)
    assert asked.call_count < 100


@pytest.mark.parametrize("is_typed", [False, True])
@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize(
    ("erased", "earliest", "offset"), [(range(17, 20), 0, 17), (range(20), 0, 0), (range(20), 5, 5)]
)
def test_offsets_without_a_row_at_the_end_of_a_table_whose_epoch_is_unknown_are_loaded_again(
    is_typed: bool, policy: str, erased: range, earliest: int, offset: int
) -> None:  # fault P28
    """Nothing contradicts the rows. But nothing shows that the log has no other records where the table has no row."""
    search = search_in({}, is_typed=is_typed, erased=erased)
    search.cluster.cleanup_policies.return_value = {policy}  # type: ignore[attr-defined]
    assert search.run(A, Bounds(earliest=earliest, latest=30)).offset == offset
    assert search.run(A, Bounds(earliest=earliest, latest=30)).common


def test_offsets_without_a_row_at_the_end_of_a_log_that_became_shorter_are_not_taken_back() -> None:
    assert search_in({}, erased=range(17, 20)).run(A, Bounds(earliest=0, latest=19)).offset == 19


@pytest.mark.parametrize(
    ("partition", "other", "erased", "begin", "divergence"),
    [
        (A, 13, range(13, 15), 0, Divergence(offset=13, common=True)),
        (A, 14, range(12, 16), 0, Divergence(offset=12, common=True)),
        (A, 16, range(12, 20), 0, Divergence(offset=12, common=True)),
        (A, 16, range(20), 0, Divergence(offset=0, common=False)),
        (A, 16, range(20), 5, Divergence(offset=5, common=False)),
        # Nobody knows where the message at 11 ends.
        (IN_BYTES, 16, range(12, 20), 0, Divergence(offset=11, common=True)),
        (IN_BYTES, 16, (), 0, Divergence(offset=16, common=True)),
    ],
)
def test_offsets_without_a_row_in_front_of_another_message_are_taken_back(
    partition: BrokerPartition, other: int, erased: Collection[int], begin: int, divergence: Divergence
) -> None:  # fault P26
    """The rows at these offsets were erased or retired, so the table cannot show which of them the log has lost."""
    search = search_in({"other": other}, partition=partition, erased=erased)
    search = replace(search, state=replace(search.state, covered={partition: (begin, 20)}))
    assert search.run(partition, Bounds(earliest=0, latest=30), other_at=19) == divergence


def test_a_message_after_the_end_of_a_log_is_not_asked_for() -> None:
    search = search_in({"end": 17})
    assert search.has_message_at(A, Bounds(earliest=0, latest=17), 17)
    assert search.has_message_at(A, Bounds(earliest=0, latest=17), 16)
    assert not search_in({"end": 17, "other": 16}).has_message_at(A, Bounds(earliest=0, latest=17), 16)


@pytest.mark.parametrize(("end", "offset"), [(10, 10), (15, 15), (20, 15)])
def test_a_log_has_diverged_where_it_has_other_records_and_not_later(end: int, offset: int) -> None:
    assert Divergence(offset=15, common=True).at_most(end) == Divergence(offset=offset, common=True)


def test_rows_whose_messages_expire_during_the_search_are_not_taken_back() -> None:  # fault P12
    """The log had the message at offset 15 when its bounds were read."""
    with pytest.raises(OffsetOutOfRange):
        search_in({"end": 15}).run(A, Bounds(earliest=0, latest=20), other_at=19)


def test_a_broker_that_does_not_answer_ends_the_search() -> None:
    with pytest.raises(ConnectFailed):
        search_in({}, error=ConnectFailed("away")).run(A, Bounds(earliest=0, latest=20))


def commit(cursor: int, offset: int, digest: str, *, kind: CommitKind = CommitKind.LOAD, **changes: Any) -> LedgerEntry:
    """A commit after which the table ends at the cursor, with the last message before it."""
    messages = {A: LastMessage(offset=offset, digest=digest)}
    state = TableState(topic=CLICKS, covered={A: (0, cursor)}, last_messages=messages)
    return LedgerEntry(commit="c", run="r", kind=kind, sequence=1, ranges=(), state=replace(state, **changes))


FOUR_COMMITS = [commit(cursor, cursor - 1, "table") for cursor in (20, 15, 10, 5)]


def search_in_typed(
    log_of: Mapping[str, int],
    entries: Sequence[LedgerEntry] = FOUR_COMMITS,
    policies: frozenset[str] | KafkaIOError | None = frozenset({"delete"}),
    **more: Collection[int],
) -> DivergenceSearch:
    """A search in a typed table with these commits, the newest one first."""
    search = search_in(log_of, is_typed=True, **more)  # type: ignore[arg-type]
    asked = Mock(side_effect=policies) if isinstance(policies, KafkaIOError) else Mock(return_value=policies)
    return replace(
        search,
        cluster=Mock(last_messages=search.cluster.last_messages, cleanup_policies=asked),
        table=Mock(entries=lambda _: list(enumerate(entries))),
    )


@pytest.mark.parametrize(
    ("log_of", "bound", "divergence"),
    [
        ({"other": 12}, (0, 30), Divergence(offset=10, common=True)),
        ({"other": 19}, (0, 30), Divergence(offset=15, common=True)),
        ({"other": 5}, (0, 30), Divergence(offset=5, common=True)),
        ({"other": 4}, (0, 30), Divergence(offset=0, common=False)),
        ({"end": 17}, (0, 17), Divergence(offset=15, common=True)),
        ({"end": 14}, (0, 14), Divergence(offset=10, common=True)),
        ({"other": 12, "end": 17}, (4, 17), Divergence(offset=10, common=True)),
        ({"other": 12, "end": 17}, (9, 17), Divergence(offset=10, common=True)),
        ({"other": 12, "end": 17}, (10, 17), Divergence(offset=10, common=False)),
        ({"end": 17}, (15, 17), Divergence(offset=15, common=False)),
    ],
)
def test_a_typed_table_diverges_after_the_last_commit_whose_message_the_log_has(
    log_of: Mapping[str, int], bound: tuple[int, int], divergence: Divergence
) -> None:  # fault P11
    assert search_in_typed(log_of).run(A, Bounds(earliest=bound[0], latest=bound[1])) == divergence


def test_a_typed_table_without_messages_to_compare_is_the_same_unless_its_log_is_shorter() -> None:
    search = search_in({}, is_typed=True)
    search.cluster.cleanup_policies.return_value = {"delete"}  # type: ignore[attr-defined]
    for latest, divergence in ((20, Divergence(offset=20, common=True)), (19, Divergence(offset=0, common=False))):
        assert search.run(A, Bounds(earliest=0, latest=latest)) == divergence


def test_records_without_a_row_after_the_last_common_message_are_compared_again() -> None:
    search = search_in_typed({"other": 14}, [commit(20, 19, "table"), commit(15, 12, "table")])
    assert search.run(A, Bounds(earliest=0, latest=30)) == Divergence(offset=13, common=True)


@pytest.mark.parametrize(
    "policies", [frozenset({"compact"}), frozenset({"compact", "delete"}), None, KafkaIOError("not authorized")]
)
def test_nothing_is_found_in_a_typed_table_if_the_topic_may_be_compacted(
    policies: frozenset[str] | KafkaIOError | None,
) -> None:  # fault P12
    divergence = search_in_typed({"other": 12}, policies=policies).run(A, Bounds(earliest=0, latest=30), other_at=19)
    assert divergence == Divergence(offset=0, common=False)


def test_a_broker_that_does_not_answer_ends_the_search_of_a_typed_table() -> None:
    with pytest.raises(ConnectFailed):
        search_in_typed({}, policies=ConnectFailed("away")).run(A, Bounds(earliest=0, latest=30))
    search = search_in_typed({})
    search = replace(
        search, cluster=Mock(wraps=search.cluster, last_messages=answering(ConnectFailed("away")).last_messages)
    )
    with pytest.raises(ConnectFailed):
        search.run(A, Bounds(earliest=0, latest=30))


def test_a_message_that_cannot_be_read_does_not_show_that_the_log_is_the_same() -> None:
    divergence = search_in_typed({}, corrupt=[14, 19]).run(A, Bounds(earliest=0, latest=30))
    assert divergence == Divergence(offset=10, common=True)


@pytest.mark.parametrize(
    "earlier",
    [
        [commit(10, 9, "table", kind=CommitKind.CUT), commit(20, 14, "log")],
        [commit(14, 9, "table", kind=CommitKind.CUT), commit(20, 14, "log")],
        [commit(20, 9, "table", kind=CommitKind.REWIND), commit(20, 14, "log")],
        [commit(10, 9, "table"), commit(20, 4, "log", topic=replace(CLICKS, incarnation="6"))],
        [commit(10, 9, "table"), commit(20, 4, "log", covered={B: (0, 20)}), commit(20, 4, "log")],
    ],
)
def test_only_messages_that_a_typed_table_still_has_are_compared(earlier: list[LedgerEntry]) -> None:  # fault P12
    """A message that was taken back says nothing, although the log has it: here from offset 0 on."""
    search = search_in_typed({"other": 0}, [commit(20, 19, "table"), *earlier])
    assert search.run(A, Bounds(earliest=0, latest=30)) == Divergence(offset=0, common=False)
