"""The asset checks: the tables hold each committed offset exactly once, and they keep up with their topics."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import dagster as dg

from pipelines.defs.group_status import ask_group_status
from pipelines.defs.metadata import proof_metadata, status_metadata
from pipelines.defs.partitions import topic_of
from pipelines.defs.run_liveness import tag_worker
from pipelines.defs.topic_group import TopicGroup
from pipelines.loading.table import LakeTable
from pipelines.loading.verify import proof_of, verify
from pipelines.status.status import TopicStatus, now_ms
from resources.groups import GroupLimits
from resources.penstock import PenstockResource

COVERAGE_CHECK = "offsets_covered"
_Severity = dg.AssetCheckSeverity
_Violation = tuple[_Severity, str]
"""How serious it is that a topic exceeds a limit, and a sentence about it."""


def coverage_check(group: TopicGroup) -> dg.AssetChecksDefinition:
    """The check that verifies tables: after each load those of its topics, once a day every table."""

    # It has no partitions of its own: Dagster 1.13 evaluates a partitioned check for one key or for none, so a run
    # over a range of topics would leave the check of every topic as skipped.
    @dg.asset_check(
        asset=group.tables,
        name=COVERAGE_CHECK,
        description="Every committed offset is in its table exactly once: the ranges have no hole, the files exist, "
        "the rows are counted. After a load it verifies the tables of the loaded topics; executed alone, it verifies "
        "every table of the group.",
    )
    def coverage(context: dg.AssetCheckExecutionContext, penstock: PenstockResource) -> dg.AssetCheckResult:
        tag_worker(context)
        has_keys = context.has_partition_key or context.has_partition_key_range
        topics = [topic_of(key) for key in context.partition_keys] if has_keys else _tables_of(penstock, group)
        return dg.AssetCheckResult(**_verification(penstock, group, topics))

    return coverage


def report_coverage(
    context: dg.AssetExecutionContext, penstock: PenstockResource, group: TopicGroup, keys: Sequence[str]
) -> None:
    """Verify the tables of these partition keys and report the check from within a step that is about to fail.

    Dagster skips the check itself after a failed step.
    """
    if not keys:
        return
    verification = _verification(penstock, group, [topic_of(key) for key in keys])
    context.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(asset_key=group.tables, check_name=COVERAGE_CHECK, **verification)
    )


def _tables_of(penstock: PenstockResource, group: TopicGroup) -> list[str]:
    settings = penstock.settings()
    tables = penstock.lake().topics(group.cluster)
    return [topic for topic in tables if settings.group_of(group.cluster, topic) == group.name]


def _verification(penstock: PenstockResource, group: TopicGroup, topics: Iterable[str]) -> dict[str, Any]:
    """Verify the tables of these topics. Returns the fields of a check result."""
    lake = penstock.lake()
    proofs = [proof_of(LakeTable.of(lake, group.cluster, topic), verify) for topic in topics]
    failed = [proof.topic for proof in proofs if not proof.proven]
    return {
        "passed": not failed,
        "description": f"not proven: {', '.join(failed)}" if failed else f"tables proven: {len(proofs)}",
        "metadata": proof_metadata(proofs),
    }


def _lag_violation(status: TopicStatus, limits: GroupLimits, _now: int) -> _Violation | None:
    if limits.lag is None or status.lag is None or status.lag <= limits.lag:
        return None
    return _Severity.WARN, f"the table is {status.lag} offsets behind, more than the limit of {limits.lag}"


def _freshness_violation(status: TopicStatus, limits: GroupLimits, now: int) -> _Violation | None:
    if status.error:
        return _Severity.ERROR, status.error
    late_s = status.late_s(now)
    if late_s is None or late_s <= 60 * limits.late_minutes:
        return None
    return _Severity.WARN, f"the oldest record that is not loaded has waited for {late_s / 60:.0f} minutes"


def _retention_violation(status: TopicStatus, limits: GroupLimits, now: int) -> _Violation | None:
    share, left_s = status.left_share(now), status.left_s(now)
    if share is None or left_s is None or share >= limits.retention_left:
        return None
    severity = _Severity.ERROR if share < limits.retention_left / 2 else _Severity.WARN
    return severity, f"retention removes records that are not loaded in {left_s / 3600:.1f} hours"


def _held_back_violation(status: TopicStatus, _limits: GroupLimits, now: int) -> _Violation | None:
    sentences = status.hanging_transactions(now)
    return (_Severity.WARN, sentences[0]) if sentences else None


def _bad_records_violation(status: TopicStatus, _limits: GroupLimits, _now: int) -> _Violation | None:
    if not status.bad_records:
        return None
    return _Severity.WARN, f"{status.bad_records} records of the table do not decode: their rows have `_error`"


_CHECKS: dict[str, tuple[str, Callable[[TopicStatus, GroupLimits, int], _Violation | None]]] = {
    "lag": ("No table is further behind its topic than the setting limits.lag allows.", _lag_violation),
    "freshness": ("No record waits longer than limits.late_minutes until it is loaded.", _freshness_violation),
    "retention_race": (
        "Records are loaded while at least limits.retention_left of their retention time is left.",
        _retention_violation,
    ),
    "held_back": ("No transaction that is open for more than 15 minutes holds records back.", _held_back_violation),
    "bad_records": ("No row of a typed table has a value that does not decode.", _bad_records_violation),
}


def keeping_up_checks(group: TopicGroup) -> dg.AssetChecksDefinition:
    """The checks of every topic of the group, whether loads run or not."""

    @dg.multi_asset_check(
        name=group.named("keeping_up"),
        specs=[
            dg.AssetCheckSpec(name, asset=group.tables, description=description)
            for name, (description, _) in _CHECKS.items()
        ],
        can_subset=True,
    )
    def keeping_up(context: dg.AssetCheckExecutionContext, penstock: PenstockResource) -> Iterator[dg.AssetCheckResult]:
        tag_worker(context)
        statuses = ask_group_status(penstock, group)
        for key in sorted(context.selected_asset_check_keys):
            yield _result(key.name, group, statuses)

    return keeping_up


def _result(name: str, group: TopicGroup, statuses: Sequence[TopicStatus]) -> dg.AssetCheckResult:
    """The result of one check over all topics: the worst topic decides the severity."""
    now = now_ms()
    check = _CHECKS[name][1]
    violations = {status.topic: violation for status in statuses if (violation := check(status, group.limits, now))}
    is_error = any(severity is _Severity.ERROR for severity, _ in violations.values())
    first = next((f"{topic}: {sentence}" for topic, (_, sentence) in violations.items()), None)
    return dg.AssetCheckResult(
        asset_key=group.tables,
        check_name=name,
        passed=not violations,
        severity=_Severity.ERROR if is_error else _Severity.WARN,
        description=first or f"topics that keep up: {len(statuses)}",
        metadata=status_metadata(statuses, now, {topic: sentence for topic, (_, sentence) in violations.items()}),
    )
