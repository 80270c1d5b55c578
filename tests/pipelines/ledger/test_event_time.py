"""The valid-through of a table follows from what its partitions prove, and never advances without a proof."""

import pytest

from kafka_io.model import Bounds, BrokerPartition, OffsetRange, TopicIds
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.event_time import NO_PROOF, EventTime, PartitionTime
from pipelines.ledger.ledger import TableState, TopicFindings, TopicIdentity
from pipelines.ledger.slice_facts import Observations, SliceFacts
from pipelines.ledger.slice_times import SliceTimes
from pipelines.plan.valid_through import TimesOfLoad, log_answers
from resources.settings.topic_formats import TopicFormat

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")
FORMAT = TopicFormat(event_time="timestamp", allowed_lateness_minutes=0.001)  # 60 ms
LATENESS_MS = 60


def state(event_time: EventTime | None = None, **covered: int) -> TableState:
    return TableState(
        topic=CLICKS,
        covered={BrokerPartition(None, int(name[1:])): (0, cursor) for name, cursor in covered.items()},
        event_time=event_time,
    )


def times(asked_ms: int, *partitions: BrokerPartition, **ends: int) -> TimesOfLoad:
    bounds = {BrokerPartition(None, int(name[1:])): Bounds(earliest=0, latest=end) for name, end in ends.items()}
    answers = log_answers(bounds, asked_ms)
    return TimesOfLoad.of(FORMAT, partitions or (A, B), answers, answers, without=())


def after(load: TimesOfLoad, before: TableState, *facts: SliceFacts, **cursors: int) -> EventTime:
    covered = {**before.covered, **state(None, **cursors).covered}
    result = load.after(before, covered, facts)
    assert result is not None
    return result


def loaded(partition: BrokerPartition, max_ms: int | None, **late: int) -> SliceFacts:
    observed = Observations(times=SliceTimes(max_ms=max_ms, late=late))
    return SliceFacts(range=CommittedRange(offsets=OffsetRange(partition, 0, 1)), observed=observed)


def test_a_cursor_at_the_end_proves_the_time_of_the_answer() -> None:
    result = after(times(1000, p0=5, p1=0), state(), p0=5)
    assert result.valid_through_ms == 1000 - LATENESS_MS
    assert result.partitions[A] == PartitionTime(end=5, asked_ms=1000, at_end=True, proven_ms=1000)
    assert result.partitions[B].at_end


def test_a_cursor_before_the_end_proves_the_largest_event_time() -> None:
    result = after(times(1000, p0=50, p1=0), state(), loaded(A, 700), p0=5)
    assert (result.valid_through_ms, result.partitions[A].at_end) == (700 - LATENESS_MS, False)
    unknown = after(times(1000, p0=50, p1=0), state(), loaded(A, None), p0=5)
    assert unknown.valid_through_ms is None


def test_an_answer_that_is_older_than_the_one_of_the_table_does_not_take_its_place() -> None:  # fault U20
    """A load that began earlier commits later. Its broker may be right, or the one that was asked after it."""
    before = state(after(times(1000, p0=50, p1=0), state(), p0=20), p0=20)
    result = after(times(900, p0=30, p1=0), before, p0=30)
    assert result.partitions[A] == PartitionTime(end=50, asked_ms=1000, at_end=False, proven_ms=900)
    assert after(times(1100, p0=50, p1=0), state(result, p0=30), p0=50).partitions[A].proven_ms == 1100


def test_a_run_that_reaches_the_end_of_its_first_step_proves_the_time_of_that_step() -> None:
    bounds = {A: Bounds(earliest=0, latest=10)}
    grown = {A: Bounds(earliest=0, latest=12)}
    load = TimesOfLoad.of(FORMAT, [A], log_answers(bounds, 1000), log_answers(grown, 2000), without=())
    result = after(load, state(), p0=10)
    assert (result.valid_through_ms, result.partitions[A].at_end) == (1000 - LATENESS_MS, False)


@pytest.mark.parametrize("ends", [{"p0": 5}, {"p0": 5, "p1": 9}])
def test_a_partition_without_an_answer_or_a_proof_holds_the_valid_through(ends: dict[str, int]) -> None:
    before = EventTime(
        column="timestamp", lateness_ms=LATENESS_MS, valid_through_ms=300, partitions={A: PartitionTime(proven_ms=360)}
    )
    result = after(times(1000, **ends), state(before, p0=5), p0=5)
    assert (result.valid_through_ms, result.partitions[A].proven_ms) == (300, 1000)
    assert result.partitions[B].proven_ms is None


def test_what_a_transaction_holds_back_is_proven_by_a_later_load_that_has_passed_it() -> None:
    bounds = {A: Bounds(earliest=0, latest=5, held_back=3)}
    answers = log_answers(bounds, 1000)
    held = TimesOfLoad.of(FORMAT, [A], answers, answers, without=()).after(state(p0=5), {A: (0, 5)})
    assert held is not None
    assert (held.valid_through_ms, held.partitions[A].at_end, held.partitions[A].held_back) == (None, False, 3)
    later = log_answers({A: Bounds(earliest=0, latest=8, held_back=9)}, 2000)
    passed = TimesOfLoad.of(FORMAT, [A], later, later, without=()).after(state(held, p0=5), {A: (0, 8)})
    assert passed is not None
    assert passed.valid_through_ms == 1000 - LATENESS_MS


def test_partitions_of_0_7_prove_nothing() -> None:
    old = BrokerPartition(0, 0)
    answers = log_answers({old: Bounds(earliest=0, latest=0)}, 1000)
    result = TimesOfLoad.of(FORMAT, [old], answers, answers, without=()).after(state(), {})
    assert result is not None
    assert (result.valid_through_ms, result.partitions) == (None, {old: NO_PROOF})
    assert not PartitionTime().at_end


def test_an_expired_partition_keeps_its_proof() -> None:
    answers = log_answers({A: Bounds(earliest=3, latest=5)}, 1000)
    before = EventTime(column="timestamp", lateness_ms=LATENESS_MS, partitions={A: PartitionTime(proven_ms=400)})
    result = TimesOfLoad.of(FORMAT, [A], answers, answers, without=[A]).after(state(before, p0=5), {A: (0, 5)})
    assert result is not None
    assert result.partitions[A].proven_ms == 400


def test_a_backfill_takes_the_valid_through_away_until_the_next_commit() -> None:
    before = EventTime(column="timestamp", lateness_ms=LATENESS_MS, valid_through_ms=300)
    table = TableState(topic=CLICKS, covered={A: (4, 5)}, event_time=before)
    load = times(1000, A, p0=5)
    result = load.after(table, {A: (0, 5)})
    assert result is not None
    assert (result.valid_through_ms, result.moved_back_by) == (None, "backfill")
    again = load.after(TableState(topic=CLICKS, covered={A: (0, 5)}, event_time=result), {A: (0, 5)})
    assert again is not None
    assert (again.valid_through_ms, again.moved_back_by) == (1000 - LATENESS_MS, "")


@pytest.mark.parametrize(
    ("fields", "by"),
    [({"replaced": "6"}, "recreation"), ({"adopted": TopicIds()}, "recreation"), ({}, "setting"), (None, "")],
)
def test_another_topic_and_another_setting_begin_again(fields: dict[str, object] | None, by: str) -> None:
    column = "created_at" if fields == {} else "timestamp"
    proven = {A: PartitionTime(proven_ms=5000, max_ms=4000)}
    before = EventTime(column=column, lateness_ms=LATENESS_MS, valid_through_ms=4940, partitions=proven)
    findings = TopicFindings(**(fields or {}))  # type: ignore[arg-type]
    table = TableState(topic=CLICKS, covered={A: (0, 5)}, event_time=before, findings=findings)
    result = times(1000, A, p0=9).after(table, {A: (0, 5)})
    assert result is not None
    assert (result.valid_through_ms, result.moved_back_by) == (4940 if fields is None else None, by)


def test_a_load_without_rows_commits_at_most_once_a_minute() -> None:
    load = times(100_000, p0=5, p1=0)
    assert load.is_due(state(p0=5))
    known = after(load, state(), p0=5)
    assert not times(159_999, p0=5, p1=0).is_due(state(known, p0=5))
    assert times(160_000, p0=5, p1=0).is_due(state(known, p0=5))
    assert not times(160_000, p0=5).is_due(state(p0=5))  # one partition did not answer
    assert not load.is_due(state())  # the table has not begun
    assert not load.is_due(TableState(topic=CLICKS, findings=TopicFindings(replaced="6")))  # it has another topic yet
    assert not TimesOfLoad().is_due(state(p0=5))  # the settings do not ask for it


def test_late_rows_are_those_of_one_commit() -> None:
    first = after(times(1000, p0=5, p1=0), state(), loaded(A, 900, **{"2026-01-02T11": 2}), loaded(A, None), p0=5)
    assert first.late == {"2026-01-02T11": 2}
    assert after(times(2000, p0=5, p1=0), state(first, p0=5)).late == {}


def test_the_ledger_keeps_all_of_it() -> None:
    event_time = after(times(1000, p0=5, p1=0), state(), loaded(A, 900, **{"2026-01-02T11": 2}), p0=5)
    assert EventTime.from_dict(event_time.as_dict()) == event_time
