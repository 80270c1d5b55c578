"""What loads of a table skipped by choice, because it could not be read. A replay skips the same (fault E10)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kafka_io.model import OffsetRange
from pipelines.comparison.table_rows import TableRows
from pipelines.fetch.unreadable import GAPS
from pipelines.increments.offset_sets import OffsetSet
from pipelines.ledger.ledger import LedgerEntry, RecordedChoice
from pipelines.ledger.slice_facts import SliceFacts
from resources.errors import ReplayRefused
from resources.settings.choices import Choices


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSkips:
    """The offsets that were skipped, by the name of the choice."""

    by_choice: Mapping[str, OffsetSet]

    @classmethod
    def of(cls, entries: Iterable[tuple[int, LedgerEntry]]) -> Self:
        """The skips in these entries."""
        offsets: dict[str, list[OffsetRange]] = {name: [] for name in GAPS}
        for _, entry in entries:
            for choice in entry.choices:
                if choice.setting in GAPS:
                    offsets[choice.setting].append(choice.offsets)
        return cls(by_choice={name: OffsetSet(ranges) for name, ranges in offsets.items()})

    def names(self, ranges: Sequence[OffsetRange], choices: Choices) -> tuple[str, ...]:
        """The choices by which a replay of the ranges skips: those of the settings, and those that were recorded."""
        wanted = OffsetSet(ranges)
        return tuple(name for name in GAPS if getattr(choices, name) == "skip" or bool(wanted & self.by_choice[name]))

    def check(self, facts: Collection[SliceFacts], rows: TableRows, choices: Choices) -> None:
        """Check that the replay skipped only what a choice allows, and no offsets of which the table has rows.

        Raises:
            ReplayRefused: the brokers can no longer give rows that the table has.
        """
        for choice in skipped_in(facts):
            offsets = choice.offsets
            is_new = bool(OffsetSet([offsets]) - self.by_choice[choice.setting])
            if is_new and getattr(choices, choice.setting) != "skip":
                raise ReplayRefused(
                    f"{offsets} cannot be read ({choice.reason}), and no load has skipped it: "
                    f'{choice.setting} = "skip" in [choices] allows that'
                )
            if any(batch.num_rows for batch in rows.of(offsets.partition).between(offsets.start, offsets.stop)):
                raise ReplayRefused(
                    f"{offsets} cannot be read any more ({choice.reason}), and the table has rows of it: replay only "
                    "what is before or after it"
                )


def skipped_in(facts: Iterable[SliceFacts]) -> Iterator[RecordedChoice]:
    """The choices by which slices were read."""
    return (choice for slice_facts in facts for choice in slice_facts.observed.skipped)
