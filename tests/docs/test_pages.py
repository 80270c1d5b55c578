"""Everything that the pages name exists: settings, options, files and targets of links."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from resources.settings.settings import Settings
from resources.settings.settings_reference import EXAMPLE, sections
from tests.docs.generated import GENERATED
from tests.docs.pages import LANGUAGES, MARKDOWN, PAGES, ROOT, anchors, blocks, code, links, name_of, prose, run_blocks
from tests.pipelines.cli.walking import PROGRAM, commands

PAGE_PARAMETERS = [pytest.param(page, id=name_of(page)) for page in PAGES]
COMMANDS = {path[1:]: command for path, command in commands()}
PLACES = {place: page for page in sections(Settings) for place in page.places}
FREE_SECTIONS = {"lake_options", "spark"}  # Penstock does not define their keys
TOP_LEVEL = {place.partition(".")[0] for place in PLACES}
MINIMAL_SETTINGS = {"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:9092"}}}

_OPTION = re.compile(r"^(--[a-z-]+)(?: .*)?$")
_PATH = re.compile(r"^(kafka_io|resources|pipelines|tests|docs|\.ci|\.github)/")
_SECTION = re.compile(r"^\[([a-zA-Z_.]+)\]$")
_REFERENCE_LINK = re.compile(r"^\[[^\]]+\]: ", re.MULTILINE)
_KEY = re.compile(r"^([a-z_]+(?:\.[a-zA-Z_]+)+)$")


@pytest.mark.parametrize("page", GENERATED, ids=name_of)
def test_a_generated_page_is_up_to_date(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == GENERATED[page](), f"{name_of(page)} is out of date: run `make docs`"


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_every_block_names_its_language(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES
    assert page.read_text().count("```") == 2 * len(blocks(page))
    assert "\n~~~" not in page.read_text()  # another form of fences, which `blocks` does not find


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_every_block_of_settings_can_be_loaded(page: Path) -> None:
    for block in run_blocks(page, "toml"):
        Settings.model_validate({**MINIMAL_SETTINGS, **tomllib.loads(block.text)})


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_every_link_has_a_target(page: Path) -> None:
    assert [link for link in links(page) if not has_target(page, link)] == []
    assert not _REFERENCE_LINK.search(prose(page))  # a form of links that `links` does not find


def has_target(page: Path, link: str) -> bool:
    """Whether a link leads to a file or folder of the project and one of its headings, or to another host."""
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return "://" in link or (target.exists() and (not anchor or anchor in anchors(target)))


@pytest.mark.parametrize(
    ("link", "has"),
    [
        ("start.md", True),
        ("deploy/systemd", True),
        ("install.md#how-do-i-start-on-a-laptop", True),
        ("../README.md#how-does-it-work", True),
        ("#how-do-i-start", True),
        ("https://delta.io#any", True),
        ("nothing.md", False),
        ("install.md#what-no-page-says", False),
        ("#what-no-page-says", False),
    ],
)
def test_a_broken_link_is_noticed(link: str, has: bool) -> None:
    assert has_target(ROOT / "docs" / "index.md", link) == has


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_every_named_command_and_option_exists(page: Path) -> None:
    options = {name for command in COMMANDS.values() for name in options_of(command)}
    for text in code(page):
        option = _OPTION.fullmatch(text)
        assert not option or option[1] in options, text
        words = text.split()
        if words[0] == PROGRAM and len(words) > 1:
            command = command_of(words[1:])
            assert {word for word in words if word.startswith("--")} <= options_of(command), text


def command_of(words: list[str]) -> click.Command:
    """The command that these words name."""
    path = tuple(words[:2]) if tuple(words[:2]) in COMMANDS else tuple(words[:1])
    return COMMANDS[path]


def options_of(command: click.Command) -> set[str]:
    """The options of a command, with those of all commands."""
    return {name for parameter in command.params for name in parameter.opts} | {
        "--help",
        "--settings",
        "--debug",
        "--version",
    }


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_every_named_target_of_make_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [*code(page), *(command for block in blocks(page) for command in block.commands())]
    assert {text.split()[1] for text in named if text.startswith("make ")} <= targets


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_every_named_file_exists(page: Path) -> None:
    paths = [text for text in code(page) if _PATH.match(text) and "<" not in text]
    assert [path for path in paths if not any(ROOT.glob(path))] == []


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_every_named_setting_exists(page: Path) -> None:
    for text in code(page):
        section = _SECTION.fullmatch(text)
        assert not section or section[1] in PLACES or section[1] in FREE_SECTIONS, text
        key = _KEY.fullmatch(text)
        if key and text.partition(".")[0] in TOP_LEVEL - FREE_SECTIONS:
            place, _, name = text.rpartition(".")
            assert text in PLACES or name in {key.name for key in PLACES[place].keys}, text


def test_the_example_sets_every_key() -> None:
    example = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    Settings.load(EXAMPLE)
    unset = [
        f"{place}.{key.name}"
        for page in sections(Settings)
        for key in page.keys
        if not any(key.name in table for place in page.places for table in tables(example, place.split(".")))
        for place in page.places[:1]
    ]
    assert unset == []


def tables(data: object, path: list[str]) -> list[dict[str, object]]:
    """The TOML tables at a path, in which NAME stands for any key."""
    if path in ([], [""]):
        return [data] if isinstance(data, dict) else []
    if not isinstance(data, dict):
        return []
    children = list(data.values()) if path[0] == "NAME" else [data[path[0]]] if path[0] in data else []
    return [table for value in children for table in tables(value, path[1:])]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150
