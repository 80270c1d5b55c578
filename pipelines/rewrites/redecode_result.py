"""The result of `penstock redecode`: the values that the command line prints."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.ledger.work import SliceFailure

_MAX_REASONS = 100
_OTHER = "other reasons"


@dataclass(slots=True, kw_only=True)
class DecodedAgain:
    """Counts the records that were decoded again.

    Attributes:
        decoded: the number of records that decode now.
        bad: how many do not, by reason. If there are very many reasons, the rare ones are counted together.
        changed: whether a row differs from the row that it replaces.
    """

    decoded: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    changed: bool = False

    def add(self, other: "DecodedAgain") -> None:
        """Add the counts of others."""
        self.decoded += other.decoded
        self.bad.update(other.bad)
        self.changed |= other.changed
        for reason, count in self.bad.most_common()[_MAX_REASONS:]:
            if reason != _OTHER:
                del self.bad[reason]
                self.bad[_OTHER] += count


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRedecode:
    """The result of decoding a topic's records again.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version afterwards.
        dry_run: whether nothing was to be changed.
        decoded: the number of records that decode now.
        bad_records: the number of records that do not.
        reasons: why they do not, with the number of records for each reason.
        columns: the names of the columns that the table got.
        warnings: sentences for the user about the columns.
        failure: what failed. What was committed before stays, and a repeated run continues after it.
        seconds: how long it took.
    """

    topic: str
    table: str
    version: int | None = None
    dry_run: bool = False
    decoded: int = 0
    bad_records: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: SliceFailure | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock redecode --json`."""
        names = ("topic", "table", "version", "dry_run", "decoded", "bad_records", "columns", "warnings", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "reasons": [{"reason": reason, "records": records} for reason, records in self.reasons.items()],
            "errors": [self.failure.as_dict()] if self.failure else [],
        }
