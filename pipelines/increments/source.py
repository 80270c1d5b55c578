"""The source of increments: one version of a topic's table, compared with the version of a consumer's progress."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pipelines.increments.difference import LedgerDifference, ledger_difference
from pipelines.ledger.ledger import LedgerEntry
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import LogTorn, SourceChanged, SourceLogCleaned, TableMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProgress:
    """How far a consumer has got with a source.

    Args:
        version: the version of the source whose rows are in the output.
        fingerprint: a number for the newest entry of the ledger at that version. A table that was removed and created
            again, or a copy of an older state, has the same versions, but not the same entries.
    """

    version: int
    fingerprint: int


NOTHING = ConsumerProgress(version=-1, fingerprint=0)
"""The progress of a new consumer."""


def fingerprint(entry: LedgerEntry) -> int:
    """A number of 63 bits for an entry, so that the version of a `txn` can hold it."""
    return int.from_bytes(hashlib.sha256(entry.commit.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVersion:
    """The newest version of a table when an increment begins. All rows of the increment are read from this version."""

    table: LakeTable
    snapshot: TableSnapshot

    @classmethod
    def newest(cls, table: LakeTable) -> Self:
        """The newest version of the table.

        Raises:
            TableMissing: there is no table.
            LoadError: no load could continue from the table; see `LakeTable.existing`.
        """
        try:
            snapshot = table.existing()
        except LogTorn as error:
            raise _named(table, error) from error
        if snapshot is None:
            raise TableMissing(f"there is no table {table.uri}", table.where)
        return cls(table=table, snapshot=snapshot)

    @property
    def name(self) -> str:
        """The source as `cluster/topic`. It stays the same if the lake moves, or if the topic is created again."""
        entry = self.snapshot.entry
        assert entry is not None
        return f"{entry.topic.cluster}/{entry.topic.name}"

    @property
    def progress(self) -> ConsumerProgress:
        """The progress of a consumer that has everything of this version."""
        assert self.snapshot.entry is not None
        return ConsumerProgress(version=self.snapshot.version, fingerprint=fingerprint(self.snapshot.entry))

    def difference(self, since: ConsumerProgress) -> LedgerDifference:
        """The difference between this version and the one that a consumer has.

        Raises:
            SourceChanged: the consumer's rows come from another table, or from a newer version.
            SourceLogCleaned: entries of the log are missing.
        """
        if since.version > self.snapshot.version:
            raise self._changed(
                f"the output has version {since.version} of the table {self.table.uri}, but its newest version is "
                f"{self.snapshot.version}"
            )
        try:
            entries, exact_sets = self._checked_entries(since), self.table.exact_sets
            return ledger_difference(entries, since.version, self.snapshot.version, exact_sets)
        except LogTorn as error:
            raise _named(self.table, error) from error

    def _checked_entries(self, since: ConsumerProgress) -> Iterator[tuple[int, LedgerEntry]]:
        """The entries, newest first. The one at the version of the progress must be the one that the consumer saw."""
        checked = since.version < 0
        for version, entry in self.table.entries(self.snapshot):
            if not checked and version <= since.version:
                checked = True
                if fingerprint(entry) != since.fingerprint:
                    raise self._changed(
                        f"version {since.version} of the table {self.table.uri} is not the one that is in the output"
                    )
            yield version, entry
        if not checked:
            raise self._changed(f"the table {self.table.uri} had no rows at version {since.version}")

    def _changed(self, what: str) -> SourceChanged:
        return SourceChanged(
            f"{what}: the table was removed and loaded again, or an old copy is in its place. Build the output again: "
            "remove it, or choose another consumer and another output",
            self.table.where,
        )


def _named(table: LakeTable, error: LogTorn) -> LogTorn | SourceLogCleaned:
    """The error for a log with a missing entry; an entry that is damaged stays what it is."""
    if not isinstance(error.__cause__, FileNotFoundError):
        return error
    return SourceLogCleaned(
        f"the Delta log of {table.uri} does not tell any more what is new: {error.reason}. Then build the output "
        "again: remove it, or choose another consumer and another output",
        table.where,
    )
