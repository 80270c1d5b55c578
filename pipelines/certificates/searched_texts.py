"""Searches bytes for the texts of a condition, in every form in which an object of a table can have them.

A text is in JSON, in JSON inside of JSON, or in the path of a file. Bounds in logs and footers are cut. So there the
beginning of a long text is searched too, as far as writers keep it: a text that continues in another way is another.
Short texts and short numbers are in other bytes by chance: they are left out.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

_MIN_BYTES, _MIN_DIGITS = 4, 8
_SHORT_CUT, _CUT = 32, 64
"""How much writers keep of a bound: Spark 32 characters, Penstock 64 or 65, and deltalake 64 bytes."""
_BEYOND_CUT = 3
"""Fewer more characters can be equal: one that Penstock keeps beyond the cut, and one after a bound by chance."""
_LEVELS = 3
"""How deep JSON is inside of JSON: bounds in a commit file, and texts in the ledger."""
_AT_ONCE = 500
"""The texts of one regular expression. Arrow's library needs memory for each, and time only for the bytes."""
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")


class NotSearchable(Exception):
    """Bytes cannot be searched: they are damaged, or cannot be decompressed."""


def _in_json(text: str, *, level: int, is_ascii: bool) -> str:
    for _ in range(level):
        text = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
    return text


_FORMS: Sequence[Callable[[str], str]] = (
    partial(quote, safe=""),
    *(partial(_in_json, level=level, is_ascii=False) for level in range(_LEVELS)),
    *(partial(_in_json, level=level, is_ascii=True) for level in range(1, _LEVELS)),
)
"""The forms of a text. The form of its beginning is the beginning of its form."""


@dataclass(frozen=True, slots=True)
class _LongForm:
    """One form of a text that bounds cut.

    Args:
        whole: its bytes.
        begin: the bytes that each bound of it has.
        cuts: the numbers of bytes that a bound can have in common with it.
    """

    whole: bytes = field(repr=False)
    begin: bytes = field(repr=False)
    cuts: Sequence[range]

    @classmethod
    def of(cls, text: str, form: Callable[[str], str]) -> Self:
        """The form of a text."""

        def size(characters: int) -> int:
            return len(form(text[:characters]).encode())

        kept = text.encode()[:_CUT].decode(errors="ignore")
        short, long = (
            range(size(_SHORT_CUT), size(_SHORT_CUT) + 1),
            range(size(len(kept) - 1), size(_CUT + _BEYOND_CUT)),
        )
        return cls(form(text).encode(), form(text[:_SHORT_CUT]).encode(), (short, long) if kept != text else (short,))

    def is_in(self, content: bytes) -> bool:
        """Whether bytes have the whole text, or a bound of it."""
        at = content.find(self.begin)
        while at >= 0:
            same = _same_bytes(content[at : at + len(self.whole)], self.whole)
            if same == len(self.whole) or any(same in cut for cut in self.cuts):
                return True
            at = content.find(self.begin, at + 1)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedTexts:
    """The texts of a request, ready to be searched. Nothing prints them.

    Args:
        whole: patterns for pages and other bytes of records.
        short: patterns of those that no bound cuts, for bytes that can have bounds.
        begun: patterns of the beginnings of the others. They show quickly that `long` need not be searched.
        long: the others.
        count: the number of the texts.
        left_out: the number of values that are too short to be searched.
    """

    whole: Sequence[str] = field(default=(), repr=False)
    short: Sequence[str] = field(default=(), repr=False)
    begun: Sequence[str] = field(default=(), repr=False)
    long: Sequence[_LongForm] = field(default=(), repr=False)
    count: int = 0
    left_out: int = 0

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """The search for these texts."""
        distinct = list(dict.fromkeys(texts))
        searched = [text for text in distinct if _is_searched(text)]
        long = [text for text in searched if _is_long(text)]
        others = [text for text in searched if not _is_long(text)]
        return cls(
            whole=_patterns(searched),
            short=_patterns([*others, *(text[:cut] for text in others for cut in (_SHORT_CUT, _CUT, _CUT + 1))]),
            begun=_patterns(text[:_SHORT_CUT] for text in long),
            long=[_LongForm.of(text, form) for text in long for form in _FORMS],
            count=len(searched),
            left_out=len(distinct) - len(searched),
        )

    def in_record(self, content: bytes) -> bool:
        """Whether bytes of records have one of the texts."""
        return _has(content, self.whole)

    def in_bounds(self, content: bytes) -> bool:
        """Whether bytes that can have bounds have one of the texts, or what a bound keeps of it."""
        return _has(content, self.short) or (
            _has(content, self.begun) and any(form.is_in(content) for form in self.long)
        )


def _same_bytes(content: bytes, whole: bytes) -> int:
    """How many bytes at the beginning are the same; `content` is not longer."""
    return next((at for at, byte in enumerate(content) if byte != whole[at]), len(content))


def _is_searched(text: str) -> bool:
    digits = sum(character.isdigit() for character in text)
    return digits >= _MIN_DIGITS if _NUMBER.fullmatch(text) else len(text.encode()) >= _MIN_BYTES


def _is_long(text: str) -> bool:
    """Whether bounds cut the text. A number is found as a whole, so the beginnings of long ones are patterns."""
    return len(text) > _SHORT_CUT and not _NUMBER.fullmatch(text)


def _patterns(texts: Iterable[str]) -> list[str]:
    patterns = list(dict.fromkeys(pattern for text in texts for pattern in _patterns_of(text)))
    return ["|".join(patterns[start : start + _AT_ONCE]) for start in range(0, len(patterns), _AT_ONCE)]


def _patterns_of(text: str) -> Iterator[str]:
    """The regular expressions for the forms of a text. A number is found only as a whole."""
    if _NUMBER.fullmatch(text):
        yield rf"(?:^|[^0-9]){re.escape(text)}(?:$|[^0-9])"
    else:
        yield from (re.escape(form(text)) for form in _FORMS)


def _has(content: bytes, patterns: Sequence[str]) -> bool:
    if not content or not patterns:
        return False
    array = pa.array([content], pa.large_binary())
    return any(pc.match_substring_regex(array, pattern)[0].as_py() for pattern in patterns)
