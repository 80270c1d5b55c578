"""The rules for sentences that a program can check. `.github/CONTRIBUTING.md` has the others."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.prose.passages import Passage

MAX_WORDS = 40
QUOTED = ("Couldn't build proto file",)
"""Texts of other programs, which are not ours to change."""

_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
_CODE = re.compile(r"``?[^`]+``?")
_SENTENCE_END = re.compile(r"(?<=[.?!])[\"*)]*\s+")
# Where a passage has parts that are not one sentence: the arguments in a docstring, list items, and lines of a table.
_PART = re.compile(r"\n\s*(?=`?[\w*]+`?(?: \([^)]*\))?:\s|[-*] )|\n(?=[^\n]*\S {2,}\S)")
_LAYOUT = re.compile(r" \| ")  # of bytes
_OPENING = re.compile(r"(?:Of|That|And|Or|But|Also|Than|As(?= `)|By(?! default))\b")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that a reader has to read twice, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A passage that breaks a rule."""

    passage: Passage
    message: str

    def __str__(self) -> str:
        return f"{self.passage}: {self.message}"


def _phrase(pattern: str, instead: str) -> Phrase:
    return Phrase(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead)


PHRASES: Sequence[Phrase] = (
    _phrase(r"(?:is|are|was|were|be|been) told(?: as)?", "is reported as"),
    _phrase(r"go(?:es)? on (?:with|after|to|in|answering|when)|(?:to|cannot|can) go on", "continues"),
    _phrase("anew|afresh", "again"),
    _phrase("for so many", "for this number of"),
    _phrase("and the like|or the like", "and similar ..."),
    _phrase(
        r"(?:is|are|was|were|one|ones|those|that|only) of 0\.\d+", "a noun: `a 0.7 broker`, `the cluster runs 0.7`"
    ),
    _phrase("in vain", "without effect"),
    _phrase("what (?:cannot|can not|may) be right", "what is inconsistent"),
    _phrase("what may pass", "a temporary error"),
    _phrase("former life", "the deleted topic, the previous run"),
    _phrase("in order to", "to"),
    _phrase("due to the fact that", "because"),
    _phrase("utili[sz]e[sd]?|leverag(?:e[sd]?|ing)", "use"),
    _phrase(
        "simply|obviously|of course|trivial(?:ly)?", "nothing: what is simple for the author is not for the reader"
    ),
    _phrase(r"e\.g|i\.e|etc(?=\.)", "for example, that is, and so on"),
    _phrase("hence|thus|thereby|thereof|therein|whereof|wherein|hereby|henceforth", "so, with it, of it, in which"),
    _phrase(
        "whilst|amongst|lest|albeit|upon|hitherto|ought|shall",
        "while, among, so that not, although, on, until now, must",
    ),
    _phrase(r"can not", "cannot"),
    _phrase(r"(?:it|that|there)'s|(?:do|does|did|is|are|wo|ca|could|should)n't|(?:we|you|they)'re", "the two words"),
    _phrase(r"(the|a|an|of|to|in|is|are|and|or|it|for|with|by|on|at|not|has|have|was|as|be|if|so) \1", "the word once"),
    Phrase(re.compile(r"\b[Nn]one (?:is|are|was|were)\b(?<!None is)"), "no with a noun: `no row is`"),
)
"""What the language rules of the project forbid, and what reviews found."""


def findings(passage: Passage) -> Iterator[Finding]:
    """The rules that a passage breaks."""
    for rule in RULES:
        for message in rule(passage):
            yield Finding(passage=passage, message=message)


def sentences(text: str) -> list[str]:
    """The sentences of a passage. A link is its words, and code counts as one word."""
    parts = (_CODE.sub("Code", _LINK.sub(r"\1", part)) for part in _PART.split(text))
    return [" ".join(sentence.split()) for part in parts for sentence in _SENTENCE_END.split(part)]


def forbidden_phrases(passage: Passage) -> Iterator[str]:
    """Phrases of PHRASES outside of code."""
    text = " ".join(_CODE.sub("code", passage.text).split())
    for quoted in QUOTED:
        text = text.replace(quoted, "")
    for phrase in PHRASES:
        for match in phrase.pattern.finditer(text):
            yield f'"{match[0]}": write {phrase.instead}'


def long_sentences(passage: Passage) -> Iterator[str]:
    """Sentences of more than MAX_WORDS words. Texts of messages are not read: data of tests are among them."""
    for sentence in sentences(passage.text) if passage.kind != "message" else ():
        count = len(re.findall(r"[^\s\d]*[a-z]\S*", sentence))
        if count > MAX_WORDS and not _LAYOUT.search(sentence):
            yield f'a sentence of {count} words, at most {MAX_WORDS}: "{sentence[:60]}..."'


def openings(passage: Passage) -> Iterator[str]:
    """Docstrings that begin in the middle of a sentence, so that they need their neighbours."""
    if passage.kind == "summary" and (match := _OPENING.match(passage.text)):
        yield f'a docstring that begins with "{match[0]}": name the subject first'


RULES: Sequence[Callable[[Passage], Iterator[str]]] = (forbidden_phrases, long_sentences, openings)


def mixed_headings(page: str) -> Iterator[str]:
    """Headings of the second level that are no questions, on a page on which most are."""
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    questions = [heading for heading in headings if heading.endswith("?")]
    if 2 * len(questions) > len(headings):
        yield from (
            f'the heading "{text}" is no question, as the others are' for text in headings if text not in questions
        )
