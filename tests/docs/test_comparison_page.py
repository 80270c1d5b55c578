"""The comparison answers each question for each loader, and every source that it cites is listed and used."""

import re

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SOURCES = "Which sources does this page use?"


def loaders(section: str) -> list[str]:
    """The first cells of the table in a section, without its head."""
    rows = re.findall(r"^\| (.+?) \|", SECTIONS[section], re.MULTILINE)
    return [name.strip() for row in rows if row != "loader" for name in row.split(", ")]


def test_every_question_is_answered_for_every_loader() -> None:
    compared = loaders("What is compared?")
    assert len(compared) == 8
    questions = [section for section, text in SECTIONS.items() if "| loader | answer |" in text]
    assert len(questions) >= 7
    for question in questions:
        answered = loaders(question)
        assert sorted(answered) == sorted(compared) or answered == ["Penstock", "the others"], question


def test_the_page_says_what_every_other_loader_does_better() -> None:
    better = re.findall(r"^- \*\*(.+?)\*\*", SECTIONS["What does each of them do better than Penstock?"], re.MULTILINE)
    assert better == [name for name in loaders("What is compared?") if name != "Penstock"]


def test_every_source_is_listed_and_used_and_has_a_date() -> None:
    listed = re.findall(r"^(\d+)\. (?:.|\n   )+?\]\(https://", SECTIONS[SOURCES], re.MULTILINE)
    used = {
        number for section, text in SECTIONS.items() if section != SOURCES for number in re.findall(r"\[(\d+)\]", text)
    }
    assert listed == [str(number) for number in range(1, len(listed) + 1)]
    assert used == set(listed)
    assert "read in November 2026" in SECTIONS[SOURCES]
