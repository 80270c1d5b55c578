"""The rules by which the rows of a table were stored, as its ledger keeps them. They contain no secret."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Self

from kafka_io.typed_json import JsonObject

Constant = bool | int | float | str
KEEP, DROP = "keep", "drop"
KEY_COLUMN, HEADERS_COLUMN, RAW_COLUMN = "_kafka_key", "_kafka_headers", "_raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRules:
    """The rules of one table.

    Args:
        drop: paths of fields without a column.
        mask: constants in the place of values, by path.
        hash: ids of the keys of hashes, by path.
        key: "keep", "drop", or the id of the key of hashes after "hash:".
        headers: the headers that are stored; None for all.
        raw: "keep" or "drop": whether the bytes of records that do not decode are stored.
        checks: for each id a hash of a constant, which shows whether two keys are the same.
        since: the number of the first commit with these rules; 0 if all rows of the table follow them.
        varying: fields, and columns of records, of which older rows have more or less than newer ones.
        skip: a digest of the condition of records that loads leave out; empty without one.
        skip_since: the number of the first commit with this condition. Older rows do not follow it.
    """

    drop: tuple[str, ...] = ()
    mask: Mapping[str, Constant] = field(default_factory=dict)
    hash: Mapping[str, str] = field(default_factory=dict)
    key: str = KEEP
    headers: tuple[str, ...] | None = None
    raw: str = KEEP
    checks: Mapping[str, str] = field(default_factory=dict)
    since: int = 0
    varying: tuple[str, ...] = ()
    skip: str = ""
    skip_since: int = 0

    def as_dict(self) -> JsonObject:
        """The fields that are set, for the ledger."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(NO_RULES, name)}

    def same_as(self, other: Self) -> bool:
        """Whether the rules for the rows say the same. Rows that are there do not depend on `skip`."""
        return self._without_history() == other._without_history()

    def _without_history(self) -> Self:
        return replace(self, since=0, varying=(), skip="", skip_since=0)

    def meaning(self, path: str) -> object:
        """The meaning of the values in the column of a field: None for plain values, DROP if no new ones are stored."""
        if path in self.drop:
            return DROP
        return (
            ("hash", self.hash[path]) if path in self.hash else ("mask", self.mask[path]) if path in self.mask else None
        )

    def conflicts(self, planned: Self, has_column: Callable[[str], bool]) -> Iterator[str]:
        """The columns that would hold values of two meanings if rows were stored by the planned rules too.

        `has_column` says whether the table has a column for the field of a path.
        """
        for path in sorted({*self.mask, *self.hash, *planned.mask, *planned.hash}):
            before, after = self.meaning(path), planned.meaning(path)
            if before != after and DROP not in (before, after) and has_column(path):
                yield path
        if self.key != planned.key and DROP not in (self.key, planned.key):
            yield KEY_COLUMN

    def changed_secrets(self, planned: Self) -> list[str]:
        """The ids that have another key in the planned rules."""
        return sorted(id_ for id_, check in self.checks.items() if planned.checks.get(id_, check) != check)

    def followed_by(self, planned: Self, since: int) -> Self:
        """The rules after a commit that stores rows by the planned ones.

        `since` is the number of the commit, or 0 if the table has no older rows.
        """
        skip_since = self.skip_since if self.skip == planned.skip else since
        if self.same_as(planned):
            return self.with_skip(planned.skip, skip_since)
        varying = {*self.varying, *self._varying(planned)} if since else set[str]()
        return replace(planned, since=since, varying=tuple(sorted(varying)), skip_since=skip_since)

    def with_skip(self, skip: str, since: int) -> Self:
        """The same rules with another condition of records that are left out, since the commit with this number."""
        return replace(self, skip=skip, skip_since=since)

    def of_all_rows(self, varying: Iterable[str]) -> Self:
        """The same rules for a table all of whose rows follow them, but for what these fields and columns have."""
        return replace(self, since=0, varying=tuple(sorted({*varying})))

    def differences(self, planned: Self) -> Iterator[str]:
        """The fields, and columns of records, that rows of the planned rules have otherwise."""
        paths = {*self.drop, *self.mask, *self.hash, *planned.drop, *planned.mask, *planned.hash}
        yield from (path for path in sorted(paths) if self.meaning(path) != planned.meaning(path))
        yield from self._changed_columns(planned)
        yield from sorted({*self.varying} - {*planned.varying})

    def _varying(self, planned: Self) -> Iterator[str]:
        """The fields and columns that only older rows, or only newer ones, would have."""
        yield from {*self.drop} ^ {*planned.drop}
        yield from self._changed_columns(planned)

    def _changed_columns(self, planned: Self) -> Iterator[str]:
        for name, column in (("key", KEY_COLUMN), ("headers", HEADERS_COLUMN), ("raw", RAW_COLUMN)):
            if getattr(self, name) != getattr(planned, name):
                yield column


NO_RULES = TableRules()
