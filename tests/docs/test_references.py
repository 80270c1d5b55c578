"""Every reference in code, tests and documentation leads to something in the tree."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors
from tests.docs.references import (
    bare_numbers,
    named_pages,
    references,
    targets,
    texts,
)

TEXTS = [(path, text) for path, text in texts() if path != Path(__file__)]

# Documents that are not in the tree, in the forms in which they were cited.
_ABSENT = re.compile(
    r"\bfacts, (?:section )?\d|-facts\b|\bFINDINGS\b|\b(?:HOUSE|DESIGN|STYLE|AUDIT)\b|\b[Ss]eeds? 0\d\d\b"
)


def test_every_reference_leads_to_an_entry() -> None:
    known_targets = {page.name: targets(page) for page in (ROOT / "docs").glob("*.md")}
    cited = [reference for path, text in TEXTS for reference in references(path, text)]
    assert len(cited) > 500  # a small number means that the patterns no longer match the references
    assert [
        str(reference) for reference in cited if reference.target not in known_targets.get(reference.page, set())
    ] == []


def test_a_number_is_cited_with_its_kind() -> None:
    assert [
        (str(path.relative_to(ROOT)), numbers) for path, text in TEXTS if (numbers := bare_numbers(path, text))
    ] == []


def test_every_page_that_a_file_names_exists() -> None:
    named = [(path, *target) for path, text in TEXTS for target in named_pages(text)]
    assert len(named) > 100
    assert [
        (str(path.relative_to(ROOT)), page, anchor)
        for path, page, anchor in named
        if not (ROOT / page).exists() or (anchor and anchor not in anchors(ROOT / page))
    ] == []


def test_pages_are_found_with_their_anchors() -> None:
    text = "see docs/start.md, `docs/none.md#a-b` and (.github/CONTRIBUTING.md); not tests/docs/a.md or docs/a.mdx"
    assert named_pages(text) == {("docs/start.md", ""), ("docs/none.md", "a-b"), (".github/CONTRIBUTING.md", "")}


def test_no_document_outside_of_the_tree_is_cited() -> None:
    numbers = [(str(path.relative_to(ROOT)), match[0]) for path, text in TEXTS for match in _ABSENT.finditer(text)]
    assert numbers == []


@pytest.mark.parametrize(
    ("text", "page", "target"),
    [
        ("(fault B10)", "faults.md", "B10"),
        ("# faults W04, R15", "faults.md", "R15"),
        ("faults W04,\n    # R15", "faults.md", "R15"),
        ("(decision D03)", "decisions.md", "D03"),
        ("as in [kafka-0.7: Fetch]", "kafka-0.7.md", "Fetch"),
        ("[kafka-0.7: Messages, Fetch]", "kafka-0.7.md", "Fetch"),
    ],
)
def test_references_are_found_in_each_form(text: str, page: str, target: str) -> None:
    assert (page, target) in {(reference.page, reference.target) for reference in references(ROOT / "any.py", text)}


@pytest.mark.parametrize("text", ["(facts, 3)", "FINDINGS, 1", "seed 003", "(DESIGN, 7)", "Seeds 000 and 003", "HOUSE"])
def test_old_forms_of_citations_are_refused(text: str) -> None:
    assert _ABSENT.search(text)


@pytest.mark.parametrize("text", ["def test() -> None:  # W04", "(L03)", "faults W04 and R15"])
def test_a_bare_number_is_noticed(text: str) -> None:
    assert bare_numbers(ROOT / "any.py", text)
