"""Searches bytes for the texts of a condition, in every form in which an object of a table can have them.

A text is in JSON, in JSON inside of JSON, or in the path of a file. Bounds in logs and footers are cut, so there only
the beginning of a long text is searched. Short texts and short numbers are in other bytes by chance: they are left out.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

_MIN_BYTES, _MIN_DIGITS = 4, 8
_BOUND_CHARACTERS = 32
"""The characters that writers keep of a bound, at least: Spark 32, deltalake and Penstock 64."""
_LEVELS = 3
"""How deep JSON is inside of JSON: bounds in a commit file, and texts in the ledger."""
_AT_ONCE = 500
"""The texts of one regular expression. Arrow's library needs memory for each, and time only for the bytes."""
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedTexts:
    """The texts of a request, ready to be searched. Nothing prints them.

    Args:
        whole: patterns for pages and other bytes of records.
        cut: patterns for bytes that can have bounds: these are cut.
        count: the number of the texts.
        left_out: the number of values that are too short to be searched.
    """

    whole: Sequence[str] = field(default=(), repr=False)
    cut: Sequence[str] = field(default=(), repr=False)
    count: int = 0
    left_out: int = 0

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """The search for these texts."""
        distinct = list(dict.fromkeys(texts))
        searched = [text for text in distinct if _is_long(text)]
        return cls(
            whole=_patterns(searched),
            cut=_patterns(text[:_BOUND_CHARACTERS] for text in searched),
            count=len(searched),
            left_out=len(distinct) - len(searched),
        )

    def in_record(self, content: bytes) -> bool:
        """Whether bytes of records have one of the texts."""
        return _has(content, self.whole)

    def in_bounds(self, content: bytes) -> bool:
        """Whether bytes that can have bounds have the beginning of one of the texts."""
        return _has(content, self.cut)


def _is_long(text: str) -> bool:
    digits = sum(character.isdigit() for character in text)
    return digits >= _MIN_DIGITS if _NUMBER.fullmatch(text) else len(text.encode()) >= _MIN_BYTES


def _patterns(texts: Iterable[str]) -> list[str]:
    forms = dict.fromkeys(form for text in texts for form in _forms(text))
    return ["|".join(part) for part in _batches(list(forms))]


def _batches(forms: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(forms), _AT_ONCE):
        yield forms[start : start + _AT_ONCE]


def _forms(text: str) -> Iterator[str]:
    """The regular expressions for the forms of a text. A number is found only as a whole."""
    if _NUMBER.fullmatch(text):
        yield rf"(?:^|[^0-9]){re.escape(text)}(?:$|[^0-9])"
        return
    yield re.escape(quote(text, safe=""))
    for is_ascii in (False, True):
        form = text
        for _ in range(_LEVELS):
            yield re.escape(form)
            form = json.dumps(form, ensure_ascii=is_ascii)[1:-1]


def _has(content: bytes, patterns: Sequence[str]) -> bool:
    if not content or not patterns:
        return False
    array = pa.array([content], pa.large_binary())
    return any(pc.match_substring_regex(array, pattern)[0].as_py() for pattern in patterns)
