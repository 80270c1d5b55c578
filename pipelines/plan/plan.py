"""Planning without any I/O: what the table covers and what the brokers hold go in, slices to fetch come out.

If the cursor and the log are inconsistent, planning stops with the exact range.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.coverage import extended
from pipelines.ledger.ledger import Coverage, LeaderEpochs, RecordedChoice, TableState
from pipelines.plan.day_cuts import DayCuts
from pipelines.plan.slices import SliceSizes, cut_slices
from pipelines.plan.valid_through import LogAnswers
from pipelines.plan.window import AllBounds, OffsetWindow
from resources.errors import CursorAheadOfLog, CursorExpired, LoadError
from resources.progress import Progress

_MAX_CHANGES = 3
UNCUT = SliceSizes(slice=2**63)
"""The sizes with which each range is one slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The slices to fetch, and what else a commit of them records. All ranges are in order of partition and offset.

    Args:
        slices: the slices. Empty ones record where partitions begin that the table does not cover yet.
        skipped: the expired ranges that are skipped by choice.
        to_message: slices that end after the message of 0.7 that contains the last byte of the slice.
        errors: the partitions whose cursor is outside of the log. They are not loaded.
    """

    slices: tuple[OffsetRange, ...]
    skipped: tuple[OffsetRange, ...] = ()
    to_message: frozenset[OffsetRange] = frozenset()
    errors: Mapping[BrokerPartition, LoadError] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of offsets to fetch."""
        return sum(offsets.size for offsets in self.slices)

    def choices(self, state: TableState) -> Iterator[RecordedChoice]:
        """The user's choices that this plan follows; `state` is the table's before it."""
        new = {offsets.partition for offsets in (*self.slices, *self.skipped)}
        # An adopted table continues at its cursors. If all its rows were taken back, it has no cursors.
        partitions = state.covered.keys() if state.findings.adopted and state.covered else new
        for setting, value in state.findings.followed.items():
            for partition in sorted(partitions):
                cursor = state.covered[partition][1] if partition in state.covered else 0
                yield RecordedChoice.of(setting, value, OffsetRange(partition, cursor, cursor))
        for offsets in self.skipped:
            yield RecordedChoice.of("on_expired", "skip", offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """The offsets that a run loads in all its steps. It loads `total` offsets of a window; `taken` of them are done.

    The window is fixed when the run begins, so that the run ends: the next run loads the records and partitions that
    appear later. `cap` is the maximum of `total`; None for no cap. `cuts` are offsets at which slices end. `answers`
    are those of the brokers when it began. `ahead` are the next steps, whose slices may be fetched already. `changes`
    counts the steps after which partitions were planned again, because their leader had changed.
    """

    window: OffsetWindow
    total: int
    taken: int = 0
    cap: int | None = None
    cuts: DayCuts = field(default_factory=dict)
    answers: LogAnswers = field(default_factory=dict)
    ahead: tuple["PlannedStep", ...] = ()
    changes: int = 0

    @property
    def follows_leaders(self) -> bool:
        """Whether partitions are planned again if their leader changes; not for ever."""
        return self.changes < _MAX_CHANGES

    @property
    def remaining(self) -> int:
        """The number of offsets that the run still has to load; at least 1, because a cap of 0 would be no cap."""
        return max(1, self.total - self.taken)

    @property
    def reached(self) -> bool:
        """Whether the run is done."""
        return self.taken >= self.total or not self.window.ends

    def after(self, step: Plan, *, overtaken: int = 0, more: int = 0, failed: Collection[BrokerPartition] = ()) -> Self:
        """The target after a step. A step without offsets ends the run: other runs have loaded the rest.

        Args:
            step: the plan of the step.
            overtaken: the number of its offsets that were not committed, because another run was first, or another
                leader. The next step plans them again, as far as the other run has not loaded them.
            more: the number of offsets that the run did not plan to load: another run began the table before them.
            failed: partitions that the run does not load any further.
        """
        taken = self.taken + step.size - overtaken if step.size else self.total
        total = self.total + more if self.cap is None else min(self.total + more, self.cap)
        return replace(self, total=total, taken=taken, window=self.window.without(failed), ahead=self.ahead[1:])

    def progress(self, step: Plan, on_progress: Progress) -> Progress:
        """The callback for the progress of a step, which reports the progress of the whole run to `on_progress`."""
        size = step.size  # summed once: the callback is called for every slice
        return lambda done, total: on_progress(self.taken + size * done // max(1, total), self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of a run, and the state on which it was planned.

    A step can be planned before the step in front of it is committed, as if all its slices were committed. So Spark
    can fetch its slices with the cores that the last slices of the other step leave free.

    Args:
        plan: what the step loads.
        sizes: the sizes of its slices.
        covered: what the table covers when the step begins.
        epochs: the leader epochs of its partitions. Only a new leader truncates a log, so what was fetched in the same
            epoch is still there.
    """

    plan: Plan
    sizes: SliceSizes
    covered: Coverage
    epochs: LeaderEpochs

    @classmethod
    def of(cls, planned: Plan, sizes: SliceSizes, state: TableState, bounds: AllBounds) -> Self:
        """The step that was planned on this state and these bounds."""
        partitions = {offsets.partition for offsets in planned.slices}
        epochs = {partition: bounds[partition].epoch for partition in partitions}
        return cls(plan=planned, sizes=sizes, covered=state.covered, epochs=epochs)

    def fits(self, covered: Coverage, bounds: AllBounds) -> bool:
        """Whether the table and the logs are as planned, so that the step can begin."""
        # Another commit, another leader or retention may have come in between (fault O09). The commit stores the epochs
        # of now, so slices of an earlier epoch would hide a truncation (decision D44).
        return self.covered == covered and all(
            offsets.partition in bounds
            and bounds[offsets.partition].epoch == self.epochs[offsets.partition]
            and bounds[offsets.partition].earliest <= offsets.start
            and offsets.stop <= bounds[offsets.partition].latest
            for offsets in self.plan.slices
        )

    @property
    def covered_after(self) -> Coverage:
        """What the table covers after the step, if all its slices are committed."""
        return extended(self.covered, (*self.plan.slices, *self.plan.skipped))


def plan_step(
    state: TableState, bounds: AllBounds, window: OffsetWindow, sizes: SliceSizes, *, skip_expired: bool
) -> Plan:
    """The older and the newer slices of a step. Under a cap, older ones get half, or what the newer ones leave."""
    plan_newer = partial(plan, state, bounds, window, skip_expired=skip_expired)
    older, newer_sizes = plan_backfill(state.covered, bounds, window, sizes), sizes
    if older and sizes.run is not None:
        for_older = max(sizes.run - plan_newer(UNCUT).size, sizes.run // 2)
        older = plan_backfill(state.covered, bounds, window, replace(sizes, run=for_older))
        newer_sizes = replace(sizes, run=max(0, sizes.run - sum(offsets.size for offsets in older)))
    newer = plan_newer(newer_sizes)
    return replace(newer, slices=(*older, *newer.slices))


def steps_after(
    step: PlannedStep, state: TableState, bounds: AllBounds, target: RunTarget, count: int
) -> Iterator[PlannedStep]:
    """At most `count` steps that follow a step of the run, planned as if each step before them had been committed."""
    for _ in range(count):
        target = target.after(step.plan)
        if target.reached:
            return
        state = replace(state, covered=step.covered_after)
        sizes = replace(step.sizes, run=target.remaining, driver=1)  # if there are steps, Spark is running
        # The step in front has already skipped what had expired. What expires later is noticed when this step begins.
        planned = plan_step(state, bounds, target.window, sizes, skip_expired=False)
        if not planned.slices:
            return
        step = PlannedStep.of(planned, sizes, state, bounds)
        yield step


def plan(
    state: TableState, bounds: AllBounds, window: OffsetWindow, sizes: SliceSizes, *, skip_expired: bool = False
) -> Plan:
    """Cut what is new below the window's end into slices; a partition without an end gets none.

    A partition without a cursor begins where the window says. If that is not offset 0, an empty slice records it, so
    that the table begins there even if nothing is loaded yet (fault P01).

    A partition gets no slices but an error if its log begins after the cursor (CursorExpired, fault B07) and
    `skip_expired` is not set, or if its log ends before the cursor (CursorAheadOfLog, faults B05, B14).
    """
    covered = state.covered
    first: dict[BrokerPartition, int] = {}
    skipped: list[OffsetRange] = []
    errors: dict[BrokerPartition, LoadError] = {}
    for id_, bound in bounds.items():
        cursor = covered[id_][1] if id_ in covered else window.begins.get(id_)
        if cursor is None:
            continue
        # Bounds that are the wrong way round are a mistake of the broker, and never a reason for a gap (fault B14).
        if skip_expired and cursor < bound.earliest <= bound.latest:
            skipped.append(OffsetRange(id_, cursor, bound.earliest))
            cursor = bound.earliest
        if bound.earliest <= cursor <= bound.latest:
            first[id_] = cursor
        else:
            errors[id_] = _outside_log(cursor, bound, state.topic.where.within(Where(partition=str(id_))))
    # The window is that of the beginning of the run. The log can have become shorter since (fault G08).
    ends = {id_: min(window.ends[id_], bounds[id_].latest) for id_ in first if id_ in window.ends}
    slices = list(cut_slices([OffsetRange(id_, first[id_], end) for id_, end in ends.items()], bounds, sizes))
    # In 0.7 the cap of a run can end inside of a message, whose length nobody knows before it is read. The next slice
    # must begin where a message begins, so such a slice is read to the end of the message (fault U02).
    to_message = frozenset(
        offsets
        for offsets in slices
        if offsets.partition.broker is not None
        and offsets.stop not in {ends[offsets.partition], *bounds[offsets.partition].segment_starts}
    )
    return Plan(
        slices=tuple(sorted([*_begins(covered, {id_: first[id_] for id_ in ends}), *slices])),
        skipped=tuple(sorted(skipped)),
        to_message=to_message,
        errors=errors,
    )


def plan_backfill(covered: Coverage, bounds: AllBounds, window: OffsetWindow, sizes: SliceSizes) -> list[OffsetRange]:
    """Cut what the brokers hold between the window's start and the table's first offsets into slices.

    A run with a cap takes the newest of these slices: so the table covers no hole, and the next run continues below.
    A log that ends before the table's cursor is left out: `plan` reports it.
    """
    older = [
        OffsetRange(id_, max(start, bounds[id_].earliest), covered[id_][0])
        for id_, start in window.starts.items()
        if id_ in bounds and id_ in covered and covered[id_][1] <= bounds[id_].latest
    ]
    return sorted(cut_slices(older, bounds, sizes, order=reversed))


def _begins(covered: Coverage, first: Mapping[BrokerPartition, int]) -> Iterator[OffsetRange]:
    """Empty slices that record where partitions begin that the table does not cover.

    A partition that begins at offset 0 needs none, because every partition without a range begins there. But the first
    commit of a table covers at least one partition, and so records that the table has begun.
    """
    new = sorted((id_, offset) for id_, offset in first.items() if id_ not in covered)
    late = [(id_, offset) for id_, offset in new if offset > 0]
    for id_, offset in late or (() if covered else new[:1]):
        yield OffsetRange(id_, offset, offset)


def _outside_log(offset: int, bound: Bounds, where: Where) -> LoadError:
    """The error for a cursor that is outside of the log."""
    if bound.latest < bound.earliest:
        return CursorAheadOfLog(
            f"the broker reports a log that ends before it begins: [{bound.earliest}, {bound.latest})", where
        )
    if offset < bound.earliest:
        return CursorExpired(
            f"offsets [{offset}, {bound.earliest}) expired before they were loaded; the log begins at "
            f'{bound.earliest}; on_expired = "skip" counts them as a gap and continues there',
            where.at_offset(offset),
        )
    return CursorAheadOfLog(
        f"the log ends at {bound.latest}, before the committed offset {offset}: it was truncated or recreated; "
        'on_truncated = "rewind" takes back what the log has lost',
        where.at_offset(offset),
    )
