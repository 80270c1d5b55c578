"""Holes in a log: offsets that no record batch has. Either compaction removed their records, or the log has lost them.

A log does not show which of both happened. So the topic's `cleanup.policy` decides, and it is read only if there is a
hole. A policy that cannot be read explains nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import OffsetRange
from kafka_io.records.gaps import COMPACTED, HOLE
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.coverage import is_backfill
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import Coverage
from pipelines.ledger.slice_facts import SliceFacts
from resources.errors import OffsetsMissing

MISSING = "missing"
"""The cause of a gap whose records the log has lost."""


def with_causes(cluster: Cluster, topic: str, facts: Sequence[SliceFacts]) -> list[SliceFacts]:
    """The facts with a cause for each hole: compaction if the topic is compacted, otherwise MISSING.

    Raises:
        KafkaIOError: the topic's policy cannot be read now, but perhaps later.
    """
    # Most topics have no holes, and the policy costs a request, which the client may not even be allowed to send.
    if not any(HOLE in slice_facts.range.gaps for slice_facts in facts):
        return list(facts)
    reason = _why_not_compacted(cluster, topic)
    return [_with_cause(slice_facts, reason) for slice_facts in facts]


def _why_not_compacted(cluster: Cluster, topic: str) -> str:
    """Why compaction does not explain holes in the topic's logs; empty if it does."""
    try:
        policies = cluster.cleanup_policies(topic)
    except KafkaIOError as error:
        if error.retriable:
            raise
        return f"the topic's cleanup.policy cannot be read ({error.reason})"
    # An unknown policy must not excuse lost records: the user decides with `on_missing` (fault P03).
    if policies is None:
        return "the topic's cleanup.policy is unknown"
    return "" if "compact" in policies else f"the topic's cleanup.policy is {','.join(sorted(policies))}"


def _with_cause(facts: SliceFacts, reason: str) -> SliceFacts:
    """The facts whose holes compaction explains, unless there is a `reason` against it."""
    if HOLE not in facts.range.gaps:
        return facts
    gaps = dict(facts.range.gaps)
    cause, count = MISSING if reason else COMPACTED, gaps.pop(HOLE)
    gaps[cause] = gaps.get(cause, 0) + count
    # Only a refusal needs the place of the holes. Holes that compaction explains are committed as a gap.
    observed = replace(facts.observed, holes=facts.observed.holes if reason else None, holes_reason=reason)
    return replace(facts, range=replace(facts.range, gaps=gaps), observed=observed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The slices that a load does not commit because offsets are missing.

    Args:
        facts: the facts of all slices; those with missing offsets are failures.
        intact: parts of the failed slices that adjoin what can be committed, and have no missing offsets.
    """

    facts: list[SliceFacts]
    intact: list[OffsetRange]

    @classmethod
    def of(cls, facts: Sequence[SliceFacts], covered: Coverage, where: Where) -> "Refusal":
        """The refusal of the slices with missing offsets; `facts` are in order of partition and offset."""
        all_facts: list[SliceFacts] = []
        intact_parts: dict[object, OffsetRange] = {}
        for slice_facts in facts:
            offsets, holes = slice_facts.offsets, slice_facts.observed.holes
            if holes is None:
                all_facts.append(slice_facts)
                continue
            failed, intact_part = replace(offsets, start=holes.start), replace(offsets, stop=holes.start)
            if is_backfill(offsets, covered):  # it is committed from its end
                failed, intact_part = replace(offsets, stop=holes.stop), replace(offsets, start=holes.stop)
                intact_parts.pop((offsets.partition, True), None)
            # Only the first failed slice of a partition adjoins what can be committed; of a backfill, the last one.
            intact_parts.setdefault((offsets.partition, is_backfill(offsets, covered)), intact_part)
            all_facts.append(SliceFacts(range=CommittedRange(offsets=failed), failure=_failure(slice_facts, where)))
        return cls(facts=all_facts, intact=[offsets for offsets in intact_parts.values() if offsets.size > 0])


def _failure(facts: SliceFacts, where: Where) -> SliceFailure:
    holes, reason, count = facts.observed.holes, facts.observed.holes_reason, facts.range.gaps[MISSING]
    assert holes is not None
    offsets = f"offsets [{holes.start}, {holes.stop})"
    which = offsets if count == holes.size else f"{count} of the {offsets}"
    error = OffsetsMissing(
        f"the log has lost {which} before they were loaded: no record batch has them, and {reason}; "
        'on_missing = "skip" counts them as a gap and loads what comes after them'
    )
    return SliceFailure.of(error, where.within(Where(partition=str(facts.partition), offset=holes.start)))
