"""The site of the pages is complete, has no broken link, and fetches nothing from other hosts."""

import json
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, name_of
from tests.docs.website import (
    INDEX,
    MERMAID,
    PLACES,
    SiteError,
    assemble,
    build,
    navigation,
    pages_without_entry,
    place_of,
    render,
    rewritten,
)

# What a browser fetches when it opens a page: everything that is not a link to follow.
_FETCHED = re.compile(
    r"""<(?!a\b)[^>]*\b(?:src|href|srcset|poster)=["']?(?:https?:)?//[^\s"'>]+|(?:@import|url\()[^;)]*//[^;)]+"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. The build is strict, so it fails for a broken link or anchor."""
    folder = tmp_path_factory.mktemp("site")
    build(folder / "source", folder / "site")
    return folder / "site"


def test_the_site_has_each_page_and_each_file_that_a_page_links_to(site: Path) -> None:
    assert [name_of(page) for page, place in PLACES.items() if not (site / place).with_suffix(".html").exists()] == []
    targets = {target for page in PLACES for target in rewritten(page, page.read_text(encoding="utf-8"))[1]}
    places = {re.sub(r"\.md$", ".html", place_of(target)) for target in targets}
    assert len(places) > 50
    assert [place for place in sorted(places) if not (site / place).exists()] == []
    assert (site / "source/docs/deploy/systemd/penstock.target.txt").exists()


def test_the_pages_are_in_the_navigation_in_the_order_of_the_table(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    links_to_pages = re.findall(r'<a href="\./([\w.-]+)" class="md-nav__link"', text)
    pages = [page for section in navigation().values() for page in section.values()]
    assert links_to_pages == [place.replace(".md", ".html") for place in ("pages.md", *map(place_of, pages))]


def test_no_markup_is_left_as_text(site: Path) -> None:
    """A list or table directly below a line of text, for example, is one for GitHub, but not for the site."""
    left = re.compile(r"(?:^|<p>)(?:\| |#+ |[-*] |\d{1,2}\. )|```|\]\(", re.MULTILINE)
    texts = {place: (site / place).with_suffix(".html").read_text(encoding="utf-8") for place in PLACES.values()}
    prose = {place: re.sub(r"<(pre|code|script).*?</\1>", "", text, flags=re.DOTALL) for place, text in texts.items()}
    assert [(place, left.findall(text)) for place, text in prose.items() if left.search(text)] == []


def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > len(PLACES)
    assert [(file.name, match[0]) for file in files for match in _FETCHED.finditer(file.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.org/a.js">',
        '<link rel=stylesheet href="//fonts.example.org/css">',
        "<style>@import url(https://fonts.example.org/css)</style>",
        '<img alt="a" src=https://example.org/a.png>',
    ],
)
def test_a_file_of_another_host_is_noticed(html: str) -> None:
    assert _FETCHED.search(html)
    assert not _FETCHED.search('<a href="https://delta.io">')


def test_a_page_with_a_diagram_brings_the_script_that_draws_it(site: Path) -> None:
    """Without it the script of the theme fetches Mermaid from another host."""
    with_diagram = {place for page, place in PLACES.items() if any(b.language == "mermaid" for b in blocks(page))}
    assert len(with_diagram) >= 5
    for place in PLACES.values():
        text = (site / place).with_suffix(".html").read_text(encoding="utf-8")
        assert (f'<script src="{MERMAID}"' in text) == ('class="mermaid"' in text) == (place in with_diagram), place
    assert (site / MERMAID).stat().st_size > 1_000_000


def test_the_search_knows_each_page(site: Path) -> None:
    found = {entry["location"].partition("#")[0] for entry in json.loads((site / "search.json").read_text())["items"]}
    assert {place.replace(".md", ".html") for place in PLACES.values()} - found <= {"index.html"}


def test_a_broken_anchor_is_an_error_and_leaves_the_last_site(tmp_path: Path) -> None:
    config = assemble(tmp_path / "source")
    page = tmp_path / "source" / "pages" / "start.md"
    page.write_text(page.read_text() + "\n[here](install.md#what-no-page-says)\n")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("the last one")
    with pytest.raises(SiteError, match=r"start\.md"):
        render(config, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").read_text() == "the last one"


def test_a_link_to_a_missing_file_is_an_error() -> None:
    with pytest.raises(SiteError, match=r"docs/start\.md links to nothing\.md"):
        rewritten(ROOT / "docs" / "start.md", "See [nothing](nothing.md).")


def test_a_page_that_the_table_of_all_pages_lacks_is_noticed(tmp_path: Path) -> None:
    assert pages_without_entry() == []
    rows = [line for line in INDEX.read_text(encoding="utf-8").splitlines() if "(scale.md)" not in line]
    (tmp_path / "index.md").write_text("\n".join(rows).replace("](", f"]({INDEX.parent}/"))
    assert [name_of(page) for page in pages_without_entry(tmp_path / "index.md")] == ["docs/scale.md"]


def test_links_lead_to_the_same_files_on_the_site() -> None:
    text = "[a](../README.md#x) [b](deploy/compose) [c](../Makefile) ![d](ui.png) [e](#f) [g](https://delta.io)\n"
    fenced = "```text\n[a](../README.md)\n```\n"
    changed, targets = rewritten(ROOT / "docs" / "start.md", text + fenced)
    assert changed == (
        "[a](index.md#x) [b](source/docs/deploy/compose/index.md) [c](source/Makefile.txt) ![d](ui.png) [e](#f) "
        f"[g](https://delta.io)\n{fenced}"
    )
    assert len(targets) == 4
