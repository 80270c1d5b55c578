"""Searches rows for the texts of a condition at the places that no condition compares.

In undecoded values, keys and headers a text is found as a part of other bytes. Items of lists and of maps are texts of
their own, so there it is the whole item; in the text of a JSON column it is in quotes.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.layout.columns import RAW_COLUMN
from pipelines.layout.conditions import Condition
from pipelines.layout.layout import TableLayout
from resources.errors import EraseRefused

_MIN_BYTES = 4
"""Shorter texts are part of too many others to be searched in bytes."""
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenTexts:
    """The texts of a request, ready to be searched in rows.

    Args:
        texts: the texts.
        pattern: finds them in bytes.
        quoted: finds them in texts of JSON.
        of_bytes: the names of the columns with undecoded values, keys and headers.
        headers: the name of the column of headers.
        decoded: the names of the other columns that can have texts.
    """

    texts: Sequence[str] = field(repr=False)
    pattern: str = field(repr=False)
    quoted: str = field(repr=False)
    of_bytes: tuple[str, ...]
    headers: str
    decoded: tuple[str, ...]

    @classmethod
    def of(cls, condition: Condition, layout: TableLayout, schema: pa.Schema) -> Self:
        """The search for the texts of a condition in a table with these columns.

        Raises:
            EraseRefused: there are none, or one of them is so short that innocent rows would have it.
        """
        texts = list(dict.fromkeys(condition.texts()))
        if not texts or min(len(text.encode()) for text in texts) < _MIN_BYTES:
            raise EraseRefused(
                f"--also-raw searches for the values of `=` and `in`, which must have {_MIN_BYTES} bytes or "
                "more: a shorter one would be part of innocent rows"
            )
        in_json = {json.dumps(text, ensure_ascii=is_ascii): None for text in texts for is_ascii in (False, True)}
        of_bytes = (RAW_COLUMN if layout.is_typed else "value", layout.name("key"), layout.name("headers"))
        return cls(
            texts=texts,
            pattern="|".join(map(re.escape, texts)),
            quoted="|".join(map(re.escape, in_json)),
            of_bytes=tuple(name for name in of_bytes if name in schema.names),
            headers=layout.name("headers"),
            decoded=tuple(
                column.name for column in schema if column.name not in of_bytes and _can_have_texts(column.type)
            ),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are searched."""
        return (*self.of_bytes, *self.decoded)

    def mask(self, rows: pa.RecordBatch) -> _Mask:
        """The rows that have one of the texts."""
        mask = np.zeros(rows.num_rows, np.bool_)
        for name in self.of_bytes:
            column = rows.column(name)
            if name == self.headers:
                for part in ("key", "value"):
                    has = _matches(column.flatten().field(part), self.pattern)
                    mask[pc.list_parent_indices(column).to_numpy()[has]] = True
            else:
                mask |= _matches(column, self.pattern)
        for name in self.decoded:
            mask |= self._in_values(rows.column(name), is_item=False)
        return mask

    def _in_values(self, values: pa.Array, *, is_item: bool) -> _Mask:
        """The values that have one of the texts; `is_item` says that they are of a list or of a map."""
        kind = values.type
        mask = np.zeros(len(values), np.bool_)
        if pa.types.is_struct(kind):
            for number in range(kind.num_fields):
                mask |= self._in_values(pc.struct_field(values, [number]), is_item=is_item)
        elif _has_items(kind):
            starts = values.offsets.to_numpy()
            parents = np.repeat(np.arange(len(values)), np.diff(starts))
            for items in _items(values):
                own = items.slice(starts[0], starts[-1] - starts[0])
                mask[parents[self._in_values(own, is_item=True)]] = True
        elif _is_text(kind):
            mask |= _matches(values, self.quoted)
            mask |= self._is_one(values) if is_item else False
        elif is_item and pa.types.is_integer(kind):
            mask |= self._is_one(values.cast(pa.string()))
        return mask

    def _is_one(self, values: pa.Array) -> _Mask:
        known = pa.array([text.encode() for text in self.texts], pa.binary()).cast(values.type)
        return _as_mask(pc.is_in(values, known))


def _can_have_texts(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_can_have_texts(part.type) for part in kind)
    return _is_text(kind) or _has_items(kind)


def _is_text(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_of(kind) for is_of in texts)


def _has_items(kind: pa.DataType) -> bool:
    return any(is_of(kind) for is_of in (pa.types.is_list, pa.types.is_large_list, pa.types.is_map))


def _items(values: pa.Array) -> Iterator[pa.Array]:
    """All items behind a list or a map; those of another slice are among them."""
    if pa.types.is_map(values.type):
        yield values.keys
        yield values.items
    else:
        yield values.values


def _matches(values: pa.Array, pattern: str) -> _Mask:
    return _as_mask(pc.match_substring_regex(values, pattern))


def _as_mask(values: pa.Array) -> _Mask:
    mask: _Mask = pc.fill_null(values, fill_value=False).to_numpy(zero_copy_only=False)
    return mask
