"""The rules for the rows of a topic, as plans and tasks have them: for columns, for the key, for headers, for bytes.

They are applied when a record has become a row, because decoding needs the key, the headers and all fields. So one
place serves all that make rows of records: loads, replays, redecodes, conversions, deep verify and `penstock tail`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.layout.columns import AZURE_CONTENT, AZURE_HEADER, KEY_SCHEMA_HEADER, RAW_COLUMN, VALUE_SCHEMA_HEADER
from pipelines.layout.layout import TableLayout
from pipelines.layout.rows import without_empty_lists
from pipelines.ledger.table_rules import DROP, KEEP, TableRules
from pipelines.rules.column_rules import ColumnRule
from pipelines.rules.hash_keys import HashKey
from pipelines.rules.skip_condition import digest_of

if TYPE_CHECKING:  # pydantic is slow to import, and workers need no settings
    from kafka_io.hashes.keyed_hashes import KeyedHash
    from resources.settings.rules.load_rules import LoadRules
    from resources.settings.topic_formats import TopicFormat

_HASH = "hash:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """What is stored of the records of a topic.

    Args:
        columns: the rules for the fields of values.
        key: what is stored of the bytes of keys: KEEP, DROP, or the name of the secret that hashes them after `hash:`.
        headers: the headers that are stored; None for all.
        raw: whether the bytes of values that do not decode are stored: KEEP or DROP.
        secrets: the keys of hashes, by their names.
        skip: the condition of records that a load leaves out; empty for none.
    """

    columns: tuple[ColumnRule, ...] = ()
    key: str = KEEP
    headers: tuple[str, ...] | None = None
    raw: str = KEEP
    secrets: Mapping[str, HashKey] = field(default_factory=dict)
    skip: str = ""

    @classmethod
    def of(cls, format_: "TopicFormat") -> Self:
        """The rules of a topic. No secret is read."""
        load = format_.load
        return cls(
            columns=tuple(_column_rules(load)),
            key=load.key,
            headers=load.headers,
            raw=KEEP if load.keeps_raw or not format_.is_typed else DROP,
            secrets={name: HashKey(id=secret.id, reference=secret.key) for name, secret in format_.secrets.items()},
            skip=load.skip or "",
        )

    def checked(self) -> Self:
        """The same rules with the checks of their secrets.

        Raises:
            SecretMissing: this process cannot read one.
        """
        return (
            replace(self, secrets={name: key.checked() for name, key in self.secrets.items()}) if self.secrets else self
        )

    @property
    def of_key_columns(self) -> tuple[ColumnRule, ...]:
        """The rules for the columns of fields of keys: what is true for the bytes of a key is true for its fields."""
        if self.key == KEEP:
            return ()
        rule = ColumnRule(
            path="", treatment="drop" if self.key == DROP else "hash", secret=self.key.removeprefix(_HASH)
        )
        return (rule,)

    @property
    def hides_keys(self) -> bool:
        """Whether the bytes of the key are not what the record had."""
        return self.key != KEEP

    def of_stored_rows(self) -> Self:
        """The rules for rows of the table that are decoded again: what is stored of the key and headers is final."""
        return replace(self, key=KEEP, headers=None)

    def without_key(self) -> Self:
        """The rules for rows whose keys are stored by them already."""
        return replace(self, key=KEEP)

    def hashes(self) -> "Mapping[str, KeyedHash]":
        """The hashes by the names of their secrets.

        Raises:
            SecretMissing: this process cannot read a secret, or finds another one than the driver.
        """
        return {name: key.hashes() for name, key in self.secrets.items()}

    def recorded(self) -> TableRules:
        """The rules as the ledger keeps them, with the ids of secrets in the place of their names."""
        ids = {name: key.id for name, key in self.secrets.items()}
        name = self.key.removeprefix(_HASH)
        return TableRules(
            drop=tuple(sorted(rule.path for rule in self.columns if rule.drops)),
            mask={rule.path: rule.constant for rule in self.columns if rule.constant is not None},
            hash={rule.path: ids[rule.secret] for rule in self.columns if rule.secret},
            key=f"{_HASH}{ids[name]}" if name in ids else self.key,
            headers=None if self.headers is None else tuple(sorted(self.headers)),
            raw=self.raw,
            checks={key.id: key.check for _, key in sorted(self.secrets.items())},
            skip=digest_of(self.skip),
        )

    def applied(self, rows: pa.RecordBatch, layout: TableLayout) -> pa.RecordBatch:
        """The rows of a file with what is stored of keys, headers and bytes."""
        changed = {}
        if self.key != KEEP:
            name = layout.name("key")
            changed[name] = self._keys(rows.column(name))
        if self.headers is not None:
            name = layout.name("headers")
            changed[name] = _with_headers(rows.column(name), self.headers)
        if self.raw == DROP and layout.is_typed:
            changed[RAW_COLUMN] = pa.nulls(rows.num_rows, pa.binary())
        if not changed:
            return rows
        arrays = [changed.get(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)

    def _keys(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        if self.key == DROP:
            return pa.nulls(len(keys), keys.type)
        return self.secrets[self.key.removeprefix(_HASH)].hashes()(keys).cast(keys.type)


def _column_rules(load: "LoadRules") -> Iterator[ColumnRule]:
    for path in load.drop:
        yield ColumnRule(path=path, treatment="drop")
    for path, constant in load.mask.items():
        yield ColumnRule(path=path, treatment="mask", constant=constant)
    for path, secret in load.hash.items():
        yield ColumnRule(path=path, treatment="hash", secret=secret)


def _with_headers(headers: pa.ListArray, names: Sequence[str]) -> pa.ListArray:
    """The headers with these names, in their order; null for a record that has none of them.

    Those that name a schema stay too: without them, the bytes of a value that does not decode, or of a raw table, could
    never be decoded.
    """
    if headers.null_count == len(headers):
        return headers
    items, rows = headers.flatten(), pc.list_parent_indices(headers)
    named = pa.array([*names, VALUE_SCHEMA_HEADER, KEY_SCHEMA_HEADER], pa.string())
    is_azure = pc.and_(pc.equal(items.field("key"), AZURE_HEADER), pc.starts_with(items.field("value"), AZURE_CONTENT))
    is_kept = pc.or_(pc.is_in(items.field("key"), named), pc.fill_null(is_azure, fill_value=False))
    counts = np.bincount(rows.filter(is_kept).to_numpy(), minlength=len(headers))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(starts), items.filter(is_kept), type=headers.type)
    return without_empty_lists(lists)


NO_RULES = RowRules()
