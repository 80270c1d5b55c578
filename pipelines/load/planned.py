"""The third stage of a load: which slices are fetched next, and which ones probably come after them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipelines.fetch.slice_fetcher import microseconds
from pipelines.ledger.ledger import TableState
from pipelines.load.reconciled import Reconciled
from pipelines.load.run import Run
from pipelines.load.stage import Stage
from pipelines.plan.day_cuts import DayCuts, day_cuts
from pipelines.plan.plan import UNCUT, Plan, PlannedStep, RunTarget, plan_step, steps_after
from pipelines.plan.slices import SliceSizes
from pipelines.plan.valid_through import log_answers
from pipelines.plan.window import OffsetWindow
from resources.errors import TopicRecreated

_STEP_SLICES = 32
"""The number of full slices in a step of a run, if Spark has no more cores than that."""
_STEPS_AHEAD = 3
"""How many steps are begun in Spark before the step in front of them is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Stage):
    """The next step of a run. The errors are those of partitions whose offsets are not known, or not in the log.

    Args:
        reconciled: the second stage.
        target: what the run loads in all its steps, with the next step in front.
    """

    reconciled: Reconciled
    target: RunTarget

    @property
    def step(self) -> Plan:
        """What is loaded next."""
        return self.target.ahead[0].plan


def plan_next(run: Run, reconciled: Reconciled, target: RunTarget | None) -> Planned:
    """Plan the next step. The first step of a run, without a target, also fixes the target of the run.

    Raises:
        KafkaIOError: the brokers do not answer for the whole topic.
        TopicRecreated: the topic is another one than that of the steps before.
    """
    # The target has the offsets at which the former topic begins and ends: the next run plans the new one (fault P27).
    if target is not None and "on_recreated" in reconciled.state.findings.followed:
        topic = reconciled.state.topic
        raise TopicRecreated("the topic was deleted and created again while it was loaded; load again", topic.where)
    begun = target or _first_target(run, reconciled)
    planned = _with_steps(run, reconciled, begun)
    errors = {**begun.window.errors, **planned.ahead[0].plan.errors} if target is None else planned.ahead[0].plan.errors
    warnings = _window_warnings(run, begun, reconciled.state) if target is None else ()
    return Planned(reconciled=reconciled, target=planned, errors=errors, warnings=tuple(warnings))


def _first_target(run: Run, reconciled: Reconciled) -> RunTarget:
    """The offsets that the run loads within its window and its caps.

    The window is fixed now: what producers send later belongs to the next run, so that each run ends.
    """
    state, bounds, caps = reconciled.state, reconciled.bounds, run.fetcher.caps
    now_ms = microseconds(reconciled.discovered.began) // 1000
    window = run.window.in_offsets(run.cluster, state, bounds, start=run.topics.start, now_ms=now_ms)
    uncut = _plan(run, reconciled, window, UNCUT)
    is_by_day = any(table.snapshot.layout.is_by_day for table in reconciled.tables)
    cuts = day_cuts(run.cluster, state.topic.kafka_topic, uncut.slices, now_ms=now_ms) if is_by_day else {}
    # Offsets of 0.7 count bytes, so a cap in records could not be kept.
    in_bytes = any(partition.broker is not None for partition in bounds)
    cap = caps.bytes_per_run if in_bytes else caps.records_per_run
    total = uncut.size if cap is None else min(uncut.size, cap)
    return RunTarget(window=window, total=total, cap=cap, cuts=cuts, answers=log_answers(bounds, now_ms))


def _window_warnings(run: Run, target: RunTarget, state: TableState) -> Iterator[str]:
    """The warnings about the window of the run."""
    yield from target.window.warnings(state.covered)
    if not target.total and run.window.has_time:
        yield "nothing is loaded, because the brokers have no records in the given interval that are not in the table"


def _with_steps(run: Run, reconciled: Reconciled, target: RunTarget) -> RunTarget:
    """The target with its next step, and the steps behind it whose slices can be fetched already.

    The next step was planned while the step before it was fetched. It is planned again if something came between
    them: another run has committed, a slice failed, or a broker does not answer.
    """
    state, bounds, known = reconciled.state, reconciled.bounds, target.ahead
    if not (known and known[0].fits(state.covered, bounds)):
        # The jobs of steps that were begun ahead would go on for ranges that nobody will commit (fault O09).
        run.fetcher.runner.abandon(reconciled.topic.name)
        known = (_plan_step(run, reconciled, target),)
    behind = replace(target, taken=target.taken + sum(step.plan.size for step in known[:-1]))
    later = steps_after(known[-1], state, bounds, behind, 1 + _STEPS_AHEAD - len(known))
    return replace(target, ahead=(*known, *later))


def _plan_step(run: Run, reconciled: Reconciled, target: RunTarget) -> PlannedStep:
    """The next step of the run."""
    wanted = [offsets for offsets in _plan(run, reconciled, target.window, UNCUT).slices if offsets.size]
    sizes = run.fetcher.slice_sizes(reconciled.topic, wanted, reconciled.snapshot.entry)
    step_slices = max(_STEP_SLICES, run.fetcher.runner.cores)
    sizes = replace(sizes, run=target.remaining, step=step_slices, cuts=_with_edges(target.cuts, reconciled))
    plan = _plan(run, reconciled, target.window, sizes)
    return PlannedStep.of(plan, sizes, reconciled.state, reconciled.bounds)


def _with_edges(cuts: DayCuts, reconciled: Reconciled) -> DayCuts:
    """The cuts, and those where a table of several begins or ends: it has a slice completely, or not at all."""
    tables = reconciled.tables if reconciled.tables[1:] else ()
    edges = [(partition, edge) for table in tables for partition, own in table.state.covered.items() for edge in own]
    merged = {partition: {*cuts.get(partition, ())} for partition in {*cuts, *(partition for partition, _ in edges)}}
    for partition, edge in edges:
        merged[partition].add(edge)
    return {partition: tuple(sorted(own)) for partition, own in merged.items()} if edges else cuts


def _plan(run: Run, reconciled: Reconciled, window: OffsetWindow, sizes: SliceSizes) -> Plan:
    skip_expired = run.choices.on_expired == "skip"
    return plan_step(reconciled.state, reconciled.bounds, window, sizes, skip_expired=skip_expired)
