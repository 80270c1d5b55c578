"""Each rule for sentences notices a bad one, and accepts what is to be written instead."""

from pathlib import Path

import pytest

from tests.prose.passages import Passage, passages_of_module, passages_of_page
from tests.prose.rules import MAX_WORDS, PHRASES, findings, mixed_headings

LONG = "A load that was killed" + " and then that was killed" * 8 + " has one result."
BAD_SENTENCES = {
    "The state of the topic is told as gone.": "The state of the topic is reported as gone.",
    "The load goes on with the next slice.": "The load continues with the next slice.",
    "The keys are computed anew.": "The keys are computed again.",
    "The cost for so many topics.": "The cost for this number of topics.",
    "Int64Value and the like are integers.": "Int64Value and similar messages are integers.",
    "The cluster is of 0.7, so it has no groups.": "The cluster runs 0.7, so it has no groups.",
    "One of the runs works in vain.": "The work of one of the runs is lost.",
    "What cannot be right stops the topic.": "Inconsistent offsets stop the topic.",
    "A run that failed with what may pass is repeated.": "A run that failed with a temporary error is repeated.",
    "The table keeps the rows of its former life.": "The table keeps the rows of the deleted topic.",
    "Stop the loads in order to rewind.": "Stop the loads to rewind.",
    "It fails due to the fact that the log is shorter.": "It fails because the log is shorter.",
    "It utilizes the cache.": "It uses the cache.",
    "You can simply run it again.": "You can run it again.",
    "Use a store, e.g. S3.": "Use a store, for example S3.",
    "The log is shorter; hence it was truncated.": "The log is shorter, so it was truncated.",
    "Whilst a load runs, others wait.": "While a load runs, others wait.",
    "It can not be read.": "It cannot be read.",
    "It doesn't answer.": "It does not answer.",
    "It is in the the table.": "It is in the table.",
    "None if none is given.": "None if no topic is given.",
    LONG: LONG.replace(" and then that was", ". Then it was"),
}


def messages(text: str, kind: str = "page") -> list[str]:
    """What the rules say about a passage."""
    return [finding.message for finding in findings(Passage(path=Path("a.md"), line=1, kind=kind, text=text))]


@pytest.mark.parametrize("text", BAD_SENTENCES)
def test_a_bad_sentence_is_noticed_and_its_correction_is_not(text: str) -> None:
    assert len(messages(text)) == 1
    assert messages(BAD_SENTENCES[text]) == []


def test_each_phrase_has_a_bad_sentence() -> None:
    assert [
        phrase.instead for phrase in PHRASES if not any(phrase.pattern.search(text) for text in BAD_SENTENCES)
    ] == []


@pytest.mark.parametrize(
    "word", ["Of the array for so few.", "That more is filled in.", "As `first`, but later.", "By name."]
)
def test_a_docstring_that_needs_its_neighbours_is_noticed(word: str) -> None:
    assert len(messages(word, "summary")) == 1
    assert messages(word, "comment") == []


def test_a_long_list_of_arguments_is_not_one_sentence() -> None:
    arguments = "".join(f"\n    name{number}: {'word ' * 10}" for number in range(10))
    assert messages(f"Args:{arguments}", "docstring") == []
    assert len(messages("word " * (MAX_WORDS + 1), "docstring")) == 1
    assert messages("word " * (MAX_WORDS + 1), "message") == []


def test_code_is_no_prose() -> None:
    assert messages("Write `go on with` or `none is`.") == []


def test_a_page_is_read_by_paragraphs_items_and_cells() -> None:
    page = (
        "# Title\n\nOne\ntwo.\n\n- three\n  four\n- five\n\n| a | b |\n|---|---|\n| `x` | six |\n\n"
        "```sh\ngo on with\n```\n<!-- a\ncomment --> last\n"
    )
    read = [(passage.line, passage.text) for passage in passages_of_page(Path("a.md"), page) if passage.text]
    assert read == [
        (1, "# Title"), (3, "One two."), (6, "three four"), (8, "five"), (10, "a"), (10, "b"), (11, "---"), (11, "---"),
        (12, "`x`"), (12, "six"), (18, "last"),
    ]  # fmt: skip


def test_a_module_is_read_by_docstrings_comments_and_messages() -> None:
    module = (  # the comments and texts of a small module
        '"""First.\n\nSecond."""\n\nX = 1  # beside\n"""Below."""\n# one\n# comment\n\n# other\n\n\n'
        'def f():\n    """Of f."""\n    raise ValueError("a message")  # noqa: TRY003\n'
    )
    read = {(passage.line, passage.kind, passage.text) for passage in passages_of_module(Path("a.py"), module)}
    assert read == {
        (1, "summary", "First."), (3, "docstring", "Second."), (5, "comment", "beside"), (6, "summary", "Below."),
        (7, "comment", "one comment"), (10, "comment", "other"), (14, "summary", "Of f."), (15, "message", "a message"),
    }  # fmt: skip


def test_all_headings_are_questions_if_most_are() -> None:
    guide = "## How do I start?\n\n### Details\n\n## What is next?\n"
    assert list(mixed_headings(guide)) == []
    assert list(mixed_headings("## Start\n\n## Next\n\n## What is dangerous?\n")) == []
    assert list(mixed_headings(f"{guide}\n## Next\n")) == ['the heading "Next" is no question, as the others are']
