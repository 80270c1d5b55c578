"""The result of `penstock redecode`: the values that the command line prints."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.ledger.failure import Failable
from resources.printed import HIDDEN, printed_property

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
class PrintedReason:
    """Why records do not decode, and how many."""

    reason: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRedecode(Failable):
    """A result of `penstock redecode`; `columns` are those that the table got.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version afterwards.
        dry_run: whether nothing was to be changed.
        decoded: the number of records that decode now.
        bad_records: the number of records that do not.
        bad: why they do not, with the number of records for each reason.
        columns: the names of the columns that the table got.
        warnings: sentences for the user about the columns.
        seconds: how long it took.

    After a failure, what was committed before stays, and a repeated run continues after it.
    """

    topic: str
    table: str
    version: int | None = None
    dry_run: bool = False
    decoded: int = 0
    bad_records: int = 0
    bad: Mapping[str, int] = field(default_factory=dict, metadata=HIDDEN)
    columns: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    @printed_property
    def reasons(self) -> list[PrintedReason]:
        """The reasons, the most frequent first."""
        return [PrintedReason(reason=reason, records=records) for reason, records in self.bad.items()]
