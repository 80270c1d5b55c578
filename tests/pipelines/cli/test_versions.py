"""`penstock history` prints the commits of a table; `penstock rewind` prints, asks and refuses."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.small_table import SmallTable

Penstock = Callable[..., Result]


def test_history_prints_a_line_per_commit(penstock: Penstock) -> None:
    lines = penstock("history", "clicks").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["VERSION", "2", "1", "0"]
    assert "load" in lines[1]
    assert "CREATE TABLE" in lines[3]


def test_history_has_a_limit_and_prints_json(penstock: Penstock) -> None:
    newest, before = json.loads(penstock("history", "clicks", "--limit", "2", "--json").stdout)["results"]
    assert (newest["version"], newest["rows"], before["version"], before["rows"]) == (2, 5, 1, 5)
    assert [(part["partition"], part["start"], part["stop"]) for part in newest["ranges"]] == [(0, 50, 80), (1, 0, 20)]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stdin is a terminal."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)


def test_a_rewind_prints_what_changed(penstock: Penstock, small: SmallTable) -> None:
    result = penstock("rewind", "clicks", "--version", "1", "--yes")
    assert (result.exit_code, small.rows()) == (0, 5)
    lines = result.stdout.splitlines()
    assert [line.split() for line in lines[1:3]] == [["0-0", "80", "50"], ["0-1", "20", "-"]]
    assert lines[3].startswith("version 3: clicks went back from version 2 to version 1 (")
    assert lines[3].endswith(" UTC), 5 rows fewer")
    history = penstock("history", "clicks").stdout.splitlines()
    assert "rewind to 1" in history[1]
    assert "cancelled by version 3" in history[2]


def test_a_rewind_is_json_for_scripts(penstock: Penstock) -> None:
    (result,) = json.loads(penstock("rewind", "clicks", "--version", "1", "--yes", "--json").stdout)["results"]
    assert (result["version"], result["target"], result["rows"], len(result["cursors"])) == (3, 1, 5, 2)


def test_a_rewind_goes_back_to_a_time(penstock: Penstock, small: SmallTable) -> None:
    [_, created] = small.table.commits(1)
    result = penstock("rewind", "clicks", "--to", created.time.isoformat(), "--yes")
    assert (result.exit_code, small.rows()) == (0, 0)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("answer", "rows", "code", "message"),
    [
        ("y\n", 5, 0, ""),
        ("n\n", 10, 1, "Error: nothing was changed (PS-103)\n"),
        ("", 10, 130, "penstock: interrupted\n"),  # the end of the input, as Ctrl-C
    ],
)
def test_a_rewind_asks_on_a_terminal(
    answer: str, rows: int, code: int, message: str, penstock: Penstock, small: SmallTable
) -> None:
    result = penstock("rewind", "clicks", "--version", "1", stdin=answer)
    assert "Take the table of clicks back from version 2 to version 1 (" in result.stderr
    assert result.stderr.endswith(message)
    assert (result.exit_code, small.rows()) == (code, rows)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("clicks", "--version", "1"), 2, "there is no terminal: give --yes"),
        (("clicks", "--yes"), 2, "give the version to go back to: --version N or --to TIME"),
        (("clicks", "--version", "1", "--to", "-2h"), 2, "give the version to go back to"),
        (("clicks", "--to", "latest"), 2, "'latest' is not a time"),
        (("clicks", "--to", "soon"), 2, "'soon' is not a time; give a time such as 2026-01-31T12:00Z or -2h"),
        (("clicks", "--version", "7", "--yes"), 1, "RewindRefused: the table has no version 7"),
        (("clicks", "--to", "-2h", "--yes"), 1, "RewindRefused: the table has no version of "),
        (("click", "--version", "1", "--yes"), 2, "the topic 'click' has no table; did you mean 'clicks'?"),
    ],
)
def test_a_refused_rewind_is_one_sentence(
    arguments: tuple[str, ...], code: int, message: str, penstock: Penstock, small: SmallTable
) -> None:
    result = penstock("rewind", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert small.rows() == 10
