"""What the checks of a topic judge: its table, how far it is behind its topic, and what changed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from kafka_io.records.gaps import ABORTED, COMPACTED, CONTROL
from pipelines.defs.catalog.metadata import proof_metadata, status_metadata
from pipelines.ledger.committed_range import ExactCause
from pipelines.status.status import TopicStatus
from pipelines.verify.verify import Proof
from resources.errors import TableNotProven
from resources.explanations.codes import code_of, coded
from resources.quantities import count, counted, duration
from resources.settings.schedules import CheckLimits

COVERAGE, GAPS, SCHEMA_CHANGES, ERASURES = "coverage", "gaps", "schema_changes", "erasures"
_WARN, _ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
_EMPTY = "empty"  # offsets of 0.7 that belong to no message
_ON_PURPOSE = frozenset(ExactCause)
_WITHOUT_LOSS = frozenset({COMPACTED, CONTROL, ABORTED, _EMPTY}) | _ON_PURPOSE
_Violation = tuple[dg.AssetCheckSeverity, str]
"""How serious it is that a topic exceeds a limit, and a sentence about it."""
_StatusCheck = Callable[[TopicStatus, CheckLimits, int], _Violation | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one check of one topic.

    Args:
        violation: what is wrong; None if the check passes.
        passed: the sentence if nothing is wrong.
        metadata: the numbers behind it.
    """

    violation: _Violation | None
    passed: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """What must change before the verdict is worth an event of its own."""
        return self.violation[0].value if self.violation else "PASSED"

    def fields(self) -> dict[str, Any]:
        """The fields of a check's result or evaluation."""
        severity, sentence = self.violation or (_ERROR, self.passed)
        return {
            "passed": self.violation is None,
            "severity": severity,
            "description": sentence,
            "metadata": dict(self.metadata),
        }


def _lag(status: TopicStatus, limits: CheckLimits, _now: int) -> _Violation | None:
    if limits.lag is None or status.lag is None or status.lag <= limits.lag:
        return None
    return _WARN, f"the table is {count(status.lag)} offsets behind, more than the limit of {count(limits.lag)}"


def _freshness(status: TopicStatus, limits: CheckLimits, now: int) -> _Violation | None:
    if status.error:
        return _ERROR, status.error
    late_s = status.late_s(now)
    if late_s is None or late_s <= 60 * limits.late_minutes:
        return None
    return _WARN, f"the oldest record that is not loaded has waited for {duration(late_s)}"


def _retention_race(status: TopicStatus, limits: CheckLimits, now: int) -> _Violation | None:
    share, left_s = status.left_share(now), status.left_s(now)
    if share is None or left_s is None or share >= limits.retention_left:
        return None
    severity = _ERROR if share < limits.retention_left / 2 else _WARN
    return severity, f"retention removes records that are not loaded in {duration(left_s)}"


def _open_transactions(status: TopicStatus, _limits: CheckLimits, now: int) -> _Violation | None:
    sentences = status.hanging_transactions(now)
    return (_WARN, sentences[0]) if sentences else None


def _bad_records(status: TopicStatus, _limits: CheckLimits, _now: int) -> _Violation | None:
    if not status.bad_records:
        return None
    return _WARN, f"{status.bad_records} records of the table do not decode: their rows have `_error`"


STATUS_CHECKS: Mapping[str, _StatusCheck] = {
    "lag": _lag,
    "freshness": _freshness,
    "retention_race": _retention_race,
    "open_transactions": _open_transactions,
    "bad_records": _bad_records,
}
"""The checks that compare a topic with its table."""
DESCRIPTIONS: Mapping[str, str] = {
    COVERAGE: "Every committed offset is in the table exactly once: the ranges have no hole, the files exist, the rows "
    "are counted.",
    GAPS: "No offset was passed over because its record had expired, was lost, or could not be read.",
    ERASURES: "The files with erased rows are deleted before the setting housekeeping.erase_days is over.",
    SCHEMA_CHANGES: "The newest load with rows did not change the columns of the table.",
    "lag": "The table is not further behind its topic than the setting limits.lag allows.",
    "freshness": "No record waits longer than limits.late_minutes until it is loaded.",
    "retention_race": "Records are loaded while at least limits.retention_left of their retention time is left.",
    "open_transactions": "No transaction that is open for more than 15 minutes holds records back.",
    "bad_records": "No row of a typed table has a value that does not decode.",
}
"""All checks of a topic, by name."""
PROOF_CHECKS = (COVERAGE, GAPS)
VERIFY_CHECKS = (*PROOF_CHECKS, ERASURES)
"""The checks of the job that verifies tables; the job that watches topics leaves them out."""
_NEAR_DEADLINE = 0.25
"""The share of erase_days that is left when the check `erasures` begins to warn."""
_OF_TYPED_TABLES = frozenset({SCHEMA_CHANGES, "bad_records"})


def checks_of(*, is_typed: bool, limits: CheckLimits, is_own: bool = True) -> list[str]:
    """The names of the checks of a table. A raw table always has the same columns, and keeps values as bytes.

    Of several tables of a topic, the topic's own one has the checks that compare it with the brokers.
    """
    unneeded = {"lag"} if limits.lag is None else set()
    unneeded |= set() if is_typed else _OF_TYPED_TABLES
    unneeded |= set() if is_own else STATUS_CHECKS.keys() - _OF_TYPED_TABLES
    return [name for name in DESCRIPTIONS if name not in unneeded]


def judge_status(name: str, status: TopicStatus, limits: CheckLimits, now: int) -> Verdict:
    """The verdict of a check that compares a topic with its table."""
    violation = STATUS_CHECKS[name](status, limits, now)
    return Verdict(violation=violation, passed="the table keeps up", metadata=status_metadata(status, now))


def judge_proof(name: str, proof: Proof) -> Verdict:
    """The verdict of a check that reads the table."""
    if name == COVERAGE:
        code = None if proof.failure else code_of(TableNotProven)  # the sentence of a failure has its code
        violation = None if proof.proven else (_ERROR, coded(f"not proven: {proof.problems[0]}", code))
        return Verdict(violation=violation, passed="the table is proven", metadata=proof_metadata(proof))
    gaps = sum((Counter(partition.gaps) for partition in proof.partitions), Counter[str]())
    lost = {cause: offsets for cause, offsets in gaps.items() if cause not in _WITHOUT_LOSS}
    listed = ", ".join(f"{cause}: {count}" for cause, count in lost.items())
    sentence = f"{sum(lost.values())} offsets of the topic have no row ({listed})"
    on_purpose = {cause: offsets for cause, offsets in gaps.items() if cause in _ON_PURPOSE}
    violation = (_WARN, sentence) if lost else None
    return Verdict(violation=violation, passed="no record was passed over", metadata=lost | on_purpose)


def judge_erasures(committed: Sequence[datetime], erase_days: float, now: datetime) -> Verdict:
    """The verdict about erasures that were committed at these times, the oldest first, and whose files exist."""
    days = timedelta(days=erase_days)
    metadata = {"waiting": len(committed), "deadline": str(committed[0] + days)} if committed else {"waiting": 0}
    left = committed[0] + days - now if committed else days
    if left >= _NEAR_DEADLINE * days:
        return Verdict(violation=None, passed="no file with erased rows is near its deadline", metadata=metadata)
    severity, when = (_WARN, "ends in") if left > timedelta() else (_ERROR, "ended before")
    sentence = (
        f"files with erased rows of {counted(len(committed), 'erasure')} still exist, and housekeeping.erase_days "
        f"{when} {duration(abs(left.total_seconds()))}: `penstock clean --delete` deletes them, or Dagster's job clean"
    )
    return Verdict(violation=(severity, sentence), passed="", metadata=metadata)


def judge_schemas(newest: dg.TableSchema | None, before: dg.TableSchema | None) -> Verdict:
    """The verdict about the columns of the two newest materializations, as far as they have some."""
    changes: list[str] = []
    if newest and before:
        types, earlier = ({column.name: column.type for column in schema.columns} for schema in (newest, before))
        changes += [f"new column {name} ({type_})" for name, type_ in types.items() if name not in earlier]
        changes += [f"column {name} is gone" for name in earlier if name not in types]
        changes += [
            f"column {name} is {types[name]} instead of {type_}"
            for name, type_ in earlier.items()
            if name in types and types[name] != type_
        ]
    violation = (_WARN, "; ".join(changes)) if changes else None
    return Verdict(violation=violation, passed="the columns did not change")
