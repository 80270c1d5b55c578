"""Each example on a page is run by a test, or says why it is not."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
import yaml

from tests.docs.block_coverage import (
    EVERY_PAGE,
    IN_ORDER,
    OF_A_PAGE,
    SHOWN,
    Covered,
    InOrder,
    is_run_in_order,
    needs_entry,
    problems,
    used_by,
)
from tests.docs.deployments import check_command
from tests.docs.generated import GENERATED
from tests.docs.pages import LANGUAGES, PAGES, ROOT, Block, blocks, name_of

PAGE_PARAMETERS = [pytest.param(page, id=name_of(page)) for page in PAGES]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PROGRAMS = {
    *("apt", "apt-get", "cd", "curl", "dagster", "dagster-daemon", "dagster-webserver", "dg", "docker", "export"),
    *("git", "helm", "install", "kubectl", "make", "openssl", "penstock", "pip", "printf", "python", "python3"),
    *("sed", "sudo", "systemctl", "systemd-run", "useradd", "uv"),
}
_MARKER = re.compile(r"^<!--\s*not run", re.MULTILINE)
_IMAGE = re.compile(r"penstock(?:-\w+)?:([\w.]+)")
_STARTED = re.compile(r"(?:/bin/penstock| -- penstock| exec code penstock|docker run .*penstock[\w-]*:\S+) (.+)")
"""A command of Penstock that another program starts, by its path, its name or the name of its image."""
_WORDS_OF_A_REASON = 4


def test_each_block_has_a_test_or_a_reason() -> None:
    assert list(problems()) == []


def test_each_language_is_run_or_only_shown() -> None:
    assert {entry.language for entry in OF_A_PAGE} | EVERY_PAGE.keys() | SHOWN == LANGUAGES


def names_page(test: str, page: str) -> bool:
    """Whether a test, or what it uses, has the path or the name of a page."""
    return any(Path(text).name == Path(page).name for text in used_by(test))


@pytest.mark.parametrize("entry", OF_A_PAGE, ids=lambda entry: f"{entry.page}-{entry.test.rpartition('::')[2]}")
def test_a_test_that_is_named_takes_the_blocks_of_the_page(entry: Covered) -> None:
    assert entry.language in used_by(entry.test)
    assert names_page(entry.test, entry.page)


@pytest.mark.parametrize("entry", IN_ORDER, ids=lambda entry: entry.page)
def test_a_test_that_runs_a_page_in_order_reads_this_page(entry: InOrder) -> None:
    assert names_page(entry.test, entry.page)


def test_the_tests_for_every_page_leave_out_what_is_run_in_order() -> None:
    for test in {EVERY_PAGE[language] for language in ("sh", "console", "python")}:
        assert "is_run_in_order" in used_by(test)
    block = Block(page=IN_ORDER[0].page, language=min(IN_ORDER[0].languages), text="DeltaTable('a')", not_run="")
    assert is_run_in_order(block)
    assert not needs_entry(block)
    assert not is_run_in_order(replace(block, page="docs/start.md"))
    assert not is_run_in_order(replace(block, language="sql"))


@pytest.mark.parametrize("language", EVERY_PAGE)
def test_a_test_for_every_page_takes_the_blocks_of_all_pages(language: str) -> None:
    used = used_by(EVERY_PAGE[language])
    assert {"run_blocks", "PAGES", language} <= used


def page_with(tmp_path: Path, text: str) -> Path:
    """A page of the project with this text."""
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("```sql\nSELECT 1\n```\n", 1),
        ("```python\nDeltaTable('a')\n```\n", 1),
        ("```yaml\na: 1\n```\n\n```yaml\nb: 1\n```\n", 1),
        ("<!-- not run: it needs a server -->\n```sql\nSELECT 1\n```\n", 0),
        ("```python\nprint(1)\n```\n\n```sh\npenstock status\n```\n\n```text\noutput\n```\n", 0),
    ],
)
def test_a_block_without_a_test_is_noticed(
    text: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    reported = list(problems([page_with(tmp_path, text)], []))
    assert len(reported) == count
    assert all("page.md has" in line and "<!-- not run: REASON -->" in line for line in reported)


def test_an_entry_without_its_block_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    page = page_with(tmp_path, "```sql\nSELECT 1\n```\n")
    entry = Covered("page.md", "sql", 2, "tests/a.py::test")
    assert len(list(problems([page], [entry]))) == 1
    assert list(problems([], [entry])) == ["OF_A_PAGE names page.md, which does not exist"]


def test_what_a_test_uses_is_found_through_its_constants_and_fixtures() -> None:
    used = used_by("test_typed_tables_page.py::test_the_query_for_debezium_gives_the_present_rows")
    assert {"typed-tables.md", "sql", "run_blocks"} <= used
    assert "README.md" not in used
    imported = used_by("test_deployments.py::test_the_units_agree_with_each_other")
    assert {"UNITS", "*.service"} <= imported
    with pytest.raises(KeyError):
        used_by("test_typed_tables_page.py::test_that_does_not_exist")


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_a_reason_stands_before_a_block_and_is_a_sentence(page: Path) -> None:
    reasons = [block.not_run for block in blocks(page) if block.not_run]
    assert len(reasons) == len(_MARKER.findall(page.read_text(encoding="utf-8")))
    assert [reason for reason in reasons if len(reason.split()) < _WORDS_OF_A_REASON] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page not in GENERATED], ids=name_of)
def test_no_command_and_no_configuration_is_a_block_of_text(page: Path) -> None:
    """Help texts on the generated page have commands as examples, which are run as well."""
    assert [text for block in blocks(page) if block.language == "text" for text in disguised(block.text)] == []


def disguised(text: str) -> Iterator[str]:
    """Lines of a text that are commands, or the text if it is a file in YAML."""
    for line in text.splitlines():
        if (words := line.split()) and Path(words[0]).name in PROGRAMS:
            yield line
    try:
        content = None if text.startswith("{") else yaml.safe_load(text)  # JSON is YAML, too
    except yaml.YAMLError:
        return
    if isinstance(content, dict) and any(isinstance(value, dict | list) for value in content.values()):
        yield text


@pytest.mark.parametrize("text", ["pip install penstock-etl\n", "/opt/penstock/bin/python a.py", "a:\n  b: 1\n"])
def test_a_command_in_a_block_of_text_is_noticed(text: str) -> None:
    assert list(disguised(text))


@pytest.mark.parametrize("page", PAGE_PARAMETERS)
def test_commands_that_are_not_run_name_files_and_commands_that_exist(page: Path) -> None:
    for block in blocks(page):
        if block.not_run and block.language == "sh":
            check_without_running(block)


def check_without_running(block: Block) -> None:
    """Check the files of the repository, the versions of images and the commands of Penstock in a block of commands."""
    for command in block.commands():
        words = shlex.split(command)
        files = [word for word in words if word.startswith("docs/")]
        assert [file for file in files if not any(ROOT.glob(file))] == [], command
        assert {match[1] for match in _IMAGE.finditer(command)} <= {VERSION}, command
        if started := _STARTED.search(command):
            check_command(["penstock", *shlex.split(started[1])])


@pytest.mark.parametrize(
    "command",
    [
        "install docs/deploy/none.yaml /etc",
        "docker build -t penstock:0.0.1 .",
        "systemd-run /opt/penstock/bin/penstock config nothing",
        "docker run --rm penstock-core:VERSION load --al",
    ],
)
def test_a_wrong_word_in_a_command_that_is_not_run_is_noticed(command: str) -> None:
    text = command.replace("VERSION", VERSION) + "\n"
    with pytest.raises((AssertionError, click.UsageError)):
        check_without_running(Block(page="a.md", language="sh", text=text, not_run="it needs root"))


def test_python_that_reads_a_table_needs_a_test_of_its_page() -> None:
    block = Block(page="a.md", language="python", text="DeltaTable('a')", not_run="")
    assert needs_entry(block)
    assert not needs_entry(Block(page="a.md", language="python", text="print(1)", not_run=""))
