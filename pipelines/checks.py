"""The asset checks: what tables hold is proven, and they keep up with their topics."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import dagster as dg

from pipelines.group import TopicGroup
from pipelines.loading.table import LakeTable
from pipelines.loading.verify import verify
from pipelines.looking import look
from pipelines.partitions import topic_of
from pipelines.report import proof_metadata, status_metadata
from pipelines.watching.status import TopicStatus, now_ms
from pipelines.workers import sign
from resources.groups import Limits
from resources.penstock import PenstockResource

COVERED = "offsets_covered"
_Severity = dg.AssetCheckSeverity
_Verdict = tuple[_Severity, str]
"""How bad it is that a topic does not keep to a limit, and what is wrong with it."""


def covered_check(group: TopicGroup) -> dg.AssetChecksDefinition:
    """The check that runs after each load, and once a day over every table."""

    # Without partitions of its own: Dagster 1.13 evaluates a partitioned check for one key or for none, so that a run
    # over a range of topics would leave every topic's check as skipped.
    @dg.asset_check(
        asset=group.tables,
        name=COVERED,
        description="Every committed offset is in its table exactly once: ranges without a hole, files there, rows "
        "counted. In a run that loads topics, their tables are verified; executed by itself, every table of the group.",
    )
    def covered(context: dg.AssetCheckExecutionContext, penstock: PenstockResource) -> dg.AssetCheckResult:
        sign(context)
        ranged = context.has_partition_key or context.has_partition_key_range
        keys = context.partition_keys if ranged else None
        topics = _loaded(penstock, group) if keys is None else [topic_of(key) for key in keys]
        return dg.AssetCheckResult(**_proven(penstock, group, topics))

    return covered


def report_covered(
    context: dg.AssetExecutionContext, penstock: PenstockResource, group: TopicGroup, keys: Sequence[str]
) -> None:
    """The same of `keys`, said by a step that fails: Dagster then skips the check itself."""
    if not keys:
        return
    verdict = _proven(penstock, group, [topic_of(key) for key in keys])
    context.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(asset_key=group.tables, check_name=COVERED, **verdict)
    )


def _loaded(penstock: PenstockResource, group: TopicGroup) -> list[str]:
    settings = penstock.settings()
    found = penstock.lake().topics(group.cluster)
    return [topic for topic in found if settings.group_of(group.cluster, topic) == group.name]


def _proven(penstock: PenstockResource, group: TopicGroup, topics: Iterable[str]) -> dict[str, Any]:
    """What the check says of these topics' tables."""
    lake = penstock.lake()
    proofs = [verify(LakeTable.of(lake, group.cluster, topic)) for topic in topics]
    failed = [proof.topic for proof in proofs if not proof.proven]
    return {
        "passed": not failed,
        "description": f"not proven: {', '.join(failed)}" if failed else f"tables proven: {len(proofs)}",
        "metadata": proof_metadata(proofs),
    }


def _behind(one: TopicStatus, limits: Limits, _: int) -> _Verdict | None:
    if limits.lag is None or one.lag is None or one.lag <= limits.lag:
        return None
    return _Severity.WARN, f"{one.lag} offsets behind, more than {limits.lag}"


def _late(one: TopicStatus, limits: Limits, now: int) -> _Verdict | None:
    if one.error:
        return _Severity.ERROR, one.error
    late_s = one.late_s(now)
    if late_s is None or late_s <= 60 * limits.late_minutes:
        return None
    return _Severity.WARN, f"its oldest record that is not loaded has waited for {late_s / 60:.0f} minutes"


def _racing(one: TopicStatus, limits: Limits, now: int) -> _Verdict | None:
    share, left_s = one.left_share(now), one.left_s(now)
    if share is None or left_s is None or share >= limits.retention_left:
        return None
    severity = _Severity.ERROR if share < limits.retention_left / 2 else _Severity.WARN
    return severity, f"retention removes records that are not loaded in {left_s / 3600:.1f} hours"


_CHECKS: dict[str, tuple[str, Callable[[TopicStatus, Limits, int], _Verdict | None]]] = {
    "lag": ("No topic is further behind than the setting limits.lag allows.", _behind),
    "freshness": ("No record has waited for longer than limits.late_minutes to be loaded.", _late),
    "retention_race": ("Records have limits.retention_left of their retention left when they are loaded.", _racing),
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
        sign(context)
        found = look(penstock, group)
        for key in sorted(context.selected_asset_check_keys):
            yield _result(key.name, group, found)

    return keeping_up


def _result(name: str, group: TopicGroup, found: Sequence[TopicStatus]) -> dg.AssetCheckResult:
    """What a check says of all topics: it is as bad as the worst of them."""
    now = now_ms()
    verdicts = {one.topic: _CHECKS[name][1](one, group.limits, now) for one in found}
    broken = {topic: verdict for topic, verdict in verdicts.items() if verdict}
    errors = [topic for topic, (severity, _) in broken.items() if severity is _Severity.ERROR]
    first = next(iter(broken.items()), None)
    return dg.AssetCheckResult(
        asset_key=group.tables,
        check_name=name,
        passed=not broken,
        severity=_Severity.ERROR if errors else _Severity.WARN,
        description=f"{first[0]}: {first[1][1]}" if first else f"topics that keep up: {len(found)}",
        metadata=status_metadata(found, now, {topic: told for topic, (_, told) in broken.items()}),
    )
