"""Builds the documentation site from the pages: `make docs` writes it into `.cache/site`.

The site has the front page, the pages of `docs`, the changelog and the rules for contributions. The table of all pages
in `docs/index.md` is its navigation. Other files that pages link to are on the site as texts, and folders as lists of
their files.
"""

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from tests.docs.pages import ROOT, blocks, name_of, prose, without_blocks

INDEX = ROOT / "docs" / "index.md"
SOURCE = ROOT / ".cache" / "site-source"
SITE = ROOT / ".cache" / "site"
MERMAID = "mermaid.min.js"
STYLESHEET = "site.css"
PLACES: Mapping[Path, str] = {
    ROOT / "README.md": "index.md",
    INDEX: "pages.md",
    ROOT / "CHANGELOG.md": "changelog.md",
    ROOT / ".github" / "CONTRIBUTING.md": "contributing.md",
    ROOT / ".github" / "SECURITY.md": "security-policy.md",
    **{page: page.name for page in sorted((ROOT / "docs").glob("*.md")) if page != INDEX},
}
"""The place of each page on the site."""

_CONFIG = ROOT / "docs" / "zensical.toml"
_ASSETS = {".png", ".svg", ".json"}
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| (.*?) \|", re.MULTILINE)
_NAMED_LINK = re.compile(r"\[([^]]+)\]\(([^)\s#]+)\)")


class SiteError(Exception):
    """The site cannot be built from the pages as they are."""


def navigation(index: Path = INDEX) -> dict[str, dict[str, Path]]:
    """The pages in the table of all pages: for each heading the name in its link and the file of each page."""
    sections: dict[str, dict[str, Path]] = {}
    for heading, text in _SECTION.findall(prose(index)):
        links = [link for cell in _ROW.findall(text) for link in _NAMED_LINK.findall(cell)]
        sections[heading] = {name[0].upper() + name[1:]: (index.parent / target).resolve() for name, target in links}
    return sections


def pages_without_entry(index: Path = INDEX) -> list[Path]:
    """The pages of the site that the table of all pages does not have. The table links to the front page before it."""
    listed = {page for section in navigation(index).values() for page in section.values()}
    return [page for page in PLACES if page not in {*listed, INDEX, ROOT / "README.md"}]


def place_of(target: Path) -> str:
    """The place on the site of a file or folder of the repository."""
    if target in PLACES:
        return PLACES[target]
    path = target.relative_to(ROOT).as_posix()
    if target.is_dir():
        return f"source/{path}/index.md"
    return path.removeprefix("docs/") if target.suffix in _ASSETS else f"source/{path}.txt"


def rewritten(page: Path, text: str) -> tuple[str, set[Path]]:
    """The text of a page with the links that the site needs, and the files and folders that it links to."""
    targets: set[Path] = set()

    def on_site(match: re.Match[str]) -> str:
        path, hash_, anchor = match[1].partition("#")
        if not path or "://" in path:
            return match[1]
        target = (page.parent / path).resolve()
        if not target.exists():
            message = f"{name_of(page)} links to {path}, which does not exist; correct the link"
            raise SiteError(message)
        targets.add(target)
        return posixpath.relpath(place_of(target), posixpath.dirname(PLACES[page]) or ".") + hash_ + anchor

    return without_blocks(lambda part: _LINK.sub(on_site, part), text), targets


def assemble(source: Path = SOURCE) -> Path:
    """Write the files from which the site is built, and return the path of its configuration."""
    shutil.rmtree(source, ignore_errors=True)
    pages = source / "pages"
    linked: set[Path] = set()
    for page, place in PLACES.items():
        text, targets = rewritten(page, page.read_text(encoding="utf-8"))
        has_diagram = any(block.language == "mermaid" for block in blocks(page))
        _write(pages / place, text + (f'\n<script src="{MERMAID}"></script>\n' if has_diagram else ""))
        linked |= targets
    for target in sorted(linked - PLACES.keys()):
        for file in _files_of(target):
            _copy(file, pages / place_of(file))
        if target.is_dir():
            _write(pages / place_of(target), _list_of(target))
    _copy(ROOT / "docs" / STYLESHEET, pages / STYLESHEET)
    (pages / MERMAID).write_bytes(files("mermaidx").joinpath("assets/mermaid.js").read_bytes())
    config = source / "mkdocs.yml"  # JSON is YAML, and needs no library to be written
    _write(config, json.dumps(_config() | {"docs_dir": "pages", "site_dir": "site"}, indent=1))
    return config


def render(config: Path, site: Path) -> None:
    """Let Zensical build the site of a configuration. Any warning is an error, and leaves the last site as it is.

    Raises:
        SiteError: a link or its anchor leads nowhere.
    """
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, cwd=config.parent)
    if built.returncode:
        raise SiteError(built.stdout + built.stderr)
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(config.parent / "site", site)


def build(source: Path = SOURCE, site: Path = SITE) -> None:
    """Build the site.

    Raises:
        SiteError: a page is not in the table of all pages, or a link or its anchor leads nowhere.
    """
    if missing := [name_of(page) for page in pages_without_entry()]:
        message = f"{', '.join(missing)} is not in the tables of docs/index.md, which are the navigation; add a row"
        raise SiteError(message)
    render(assemble(source), site)


def _config() -> dict[str, object]:
    sections = [
        {heading: [{name: place_of(page)} for name, page in pages.items()]} for heading, pages in navigation().items()
    ]
    config: dict[str, object] = tomllib.loads(_CONFIG.read_text(encoding="utf-8"))["project"]
    return config | {"nav": [{"Penstock": "index.md"}, {"All pages": "pages.md"}, *sections]}


def _files_of(target: Path) -> Iterator[Path]:
    yield from sorted(file for file in target.rglob("*") if file.is_file()) if target.is_dir() else [target]


def _list_of(folder: Path) -> str:
    """A page with links to the files of a folder."""
    name = folder.relative_to(ROOT).as_posix()
    paths = (file.relative_to(folder).as_posix() for file in _files_of(folder))
    return f"# {name}\n\n" + "".join(f"- [{path}]({path}.txt)\n" for path in paths)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
