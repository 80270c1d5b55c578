"""Steps of a run that are planned before the step in front of them is committed."""

from dataclasses import replace

import pytest

from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.load.planned import _STEP_SLICES, _STEPS_AHEAD
from pipelines.plan.plan import PlannedStep, RunTarget, plan_step, steps_after
from pipelines.plan.slices import FULL, SliceSizes, group_slices
from pipelines.plan.window import OffsetWindow

A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")
BOUNDS = {A: Bounds(earliest=0, latest=95, epoch=3), B: Bounds(earliest=0, latest=10, epoch=5)}
WINDOW = OffsetWindow(begins={A: 0, B: 0}, ends={A: 95, B: 10})
EMPTY = TableState(topic=CLICKS)
SIZES = SliceSizes(slice=10, step=3, driver=4)


def first_step(run: int | None = None) -> PlannedStep:
    sizes = replace(SIZES, run=run)
    return PlannedStep.of(plan_step(EMPTY, BOUNDS, WINDOW, sizes, skip_expired=False), sizes, EMPTY, BOUNDS)


def ranges(step: PlannedStep) -> list[tuple[int, int]]:
    return [(offsets.start, offsets.stop) for offsets in step.plan.slices if offsets.partition == A and offsets.size]


def test_steps_follow_each_other_to_the_end_of_the_run() -> None:
    steps = [first_step(), *steps_after(first_step(), EMPTY, BOUNDS, RunTarget(window=WINDOW, total=105), 9)]
    joined = [offsets for step in steps for offsets in ranges(step)]
    assert joined[0][0] == 0
    assert joined[-1][1] == 95
    assert [start for start, _ in joined[1:]] == [stop for _, stop in joined[:-1]]
    assert len(steps) == 3
    assert sum(step.plan.size for step in steps) == 105
    assert {step.sizes.driver for step in steps[1:]} == {1}  # Spark is running


@pytest.mark.parametrize("count", [0, 2])
def test_there_are_at_most_as_many_steps_as_wanted(count: int) -> None:
    assert len(list(steps_after(first_step(), EMPTY, BOUNDS, RunTarget(window=WINDOW, total=105), count))) == count


def test_the_steps_of_a_capped_run_end_at_its_cap() -> None:
    target = RunTarget(window=WINDOW, total=41, cap=41)
    steps = [first_step(41), *steps_after(first_step(41), EMPTY, BOUNDS, target, 9)]
    assert sum(step.plan.size for step in steps) == 41


@pytest.mark.parametrize(
    ("changed", "fits"),
    [
        (BOUNDS, True),
        ({**BOUNDS, A: replace(BOUNDS[A], latest=120)}, True),
        ({**BOUNDS, A: replace(BOUNDS[A], latest=5)}, False),
        ({**BOUNDS, A: replace(BOUNDS[A], earliest=1)}, False),
        ({**BOUNDS, A: replace(BOUNDS[A], epoch=4)}, False),
        ({A: BOUNDS[A]}, False),
    ],
    ids=["as planned", "more records", "truncated", "expired", "another leader", "no answer"],
)
def test_a_step_fits_while_the_logs_are_as_planned(changed: dict[BrokerPartition, Bounds], *, fits: bool) -> None:
    """In another leader epoch, the log may have been truncated after the slices were fetched (KIP-320)."""
    assert first_step().fits({}, changed) is fits


def test_a_step_fits_only_the_coverage_on_which_it_was_planned() -> None:
    step = first_step()
    assert step.covered_after == {A: (0, step.covered_after[A][1]), B: (0, 10)}
    assert not step.fits({A: (0, 1)}, BOUNDS)
    [later] = steps_after(step, EMPTY, BOUNDS, RunTarget(window=WINDOW, total=105), 1)
    assert later.fits(step.covered_after, BOUNDS)
    assert OffsetRange(A, *step.covered_after[A]).stop == ranges(later)[0][0]


def test_no_slice_of_a_skewed_topic_waits_for_a_commit() -> None:  # fault S10
    """One partition has 50 full slices, and 999 others are small: all of them are begun at the same time."""
    ends = {BrokerPartition(None, 0): 100_000_000, **{BrokerPartition(None, number): 1000 for number in range(1, 1000)}}
    bounds = {partition: Bounds(earliest=0, latest=end, epoch=0) for partition, end in ends.items()}
    window = OffsetWindow(begins=dict.fromkeys(ends, 0), ends=ends)
    sizes = SliceSizes(slice=2_000_000, step=_STEP_SLICES)
    first = PlannedStep.of(plan_step(EMPTY, bounds, window, sizes, skip_expired=False), sizes, EMPTY, bounds)
    target = RunTarget(window=window, total=sum(ends.values()))
    begun = [first, *steps_after(first, EMPTY, bounds, target, _STEPS_AHEAD)]
    assert sum(step.plan.size for step in begun) == target.total
    tasks = [task for step in begun for task in group_slices(step.plan.slices, step.sizes)]
    assert len(tasks) >= 50
    assert max(sum(map(sizes.load, task)) for task in tasks) <= FULL
