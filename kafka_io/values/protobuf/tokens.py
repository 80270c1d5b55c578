"""The tokens of a `.proto` text, with the comments that document what follows them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kafka_io.errors import InvalidSchema, printable

# Repetitions that never go back (`*+`) take no memory for each character.
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<name>\.?[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+)
    | (?P<number>(?:0[xX][0-9A-Fa-f]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))
    | (?P<text>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')
    | (?P<mark>[^\sA-Za-z0-9_"'])""",
    re.VERBOSE | re.DOTALL,
)
_LINE_OF_COMMENT = re.compile(r"^[ \t]*(?://+|\*(?!/))?[ \t]?", re.MULTILINE)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_MAX_CODE_POINT = 0x10FFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A name, number, text or mark.

    Args:
        kind: `name`, `number`, `text`, `mark`, or `end` after the last one.
        text: as it is written; a name may have points.
        line: its line, from 1 on.
        comment: the comment directly before it.
    """

    kind: str
    text: str
    line: int
    comment: str = ""


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, and a last one of the kind `end`.

    Raises:
        InvalidSchema: a character belongs to no token, or a comment has no end.
    """
    position, line, comments = 0, 1, list[str]()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidSchema(f"the .proto text has an unexpected {printable(text[position])} in line {line}")
        kind, word = str(match.lastgroup), match[0]
        if kind == "mark" and text.startswith("/*", position):
            raise InvalidSchema(f"the .proto text has a comment without an end in line {line}")
        if kind == "comment":
            comments.append(_plain(word))
        elif kind == "space":
            if word.count("\n") > 1:  # a blank line parts a comment from what follows
                comments.clear()
        else:
            yield Token(kind=kind, text=word, line=line, comment=" ".join(comments))
            comments.clear()
        line += word.count("\n")
        position = match.end()
    yield Token(kind="end", text="", line=line)


def _plain(comment: str) -> str:
    """A comment as one line without its marks."""
    inner = comment.removeprefix("/*").removesuffix("*/") if comment.startswith("/*") else comment
    return " ".join(_LINE_OF_COMMENT.sub("", inner).split()).encode(errors="replace").decode()


def unquoted(token: str) -> bytes:
    r"""The bytes of a text in quotes.

    >>> unquoted(r'"a\x41"')
    b'aA'
    """
    return _ESCAPE.sub(_escaped, token[1:-1].encode(errors="replace"))


def _escaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, short, long, mark = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    if mark is not None:
        return _ESCAPED.get(mark, mark)
    return chr(min(int(short or long, 16), _MAX_CODE_POINT)).encode(errors="replace")
