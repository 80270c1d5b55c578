"""`penstock explain` says what the code of an error means, offline, and errors lead to it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from kafka_io.errors import ConnectFailed
from pipelines.cli.main import main
from pipelines.cli.output.log_lines import LogFormat, configured, error
from pipelines.cli.output.result import CommandResult, Errors, ends_of
from resources.errors import CursorExpired, LakeRefused, TopicRecreated
from resources.explanations import codes
from resources.explanations.codes import ROWS
from resources.explanations.explanation import ExitCode
from resources.explanations.texts import explanations
from tests.pipelines.cli.terminals import on_terminal
from tests.pipelines.cli.walking import leads_on

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def explain(*words: str) -> Result:
    return CliRunner().invoke(main, ["explain", *words])


@pytest.mark.parametrize("text", ["PS-301", "ps-301", "301", " PS301 ", "CursorExpired", "cursorexpired"])
def test_a_code_is_explained_in_each_form(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # there are no settings
    result = explain(text)
    assert (result.exit_code, result.stderr) == (0, "")
    first, kinds, *_ = result.stdout.splitlines()
    assert first == "PS-301: Retention removed records before they were loaded"
    assert kinds == "CursorExpired; exit code 4"
    assert "`penstock load TOPIC --on-expired skip`" in result.stdout
    assert "docs/incidents.md#retention-removed-records-before-they-were-loaded" in result.stdout


@pytest.mark.parametrize(("kind", "code"), [("NoSuchOption", "PS-102"), ("IsADirectoryError", "PS-712")])
def test_the_kind_of_an_error_of_another_library_is_explained(kind: str, code: str) -> None:
    assert explain(kind).stdout.startswith(f"{code}: ")


def test_every_code_can_be_explained_and_is_in_the_list() -> None:
    listed = explain().stdout
    for code, explanation in explanations().items():
        assert f"  {code}  {explanation.title}\n" in listed
    assert len(json.loads(explain("--json").stdout)["results"]) == len(ROWS)


@pytest.mark.parametrize("code", ROWS)
def test_no_command_in_an_explanation_is_broken_into_two_lines(code: str) -> None:
    lines = explain(code).stdout.splitlines()
    assert [line for line in lines if line.count("`") % 2] == []


def test_a_quiet_explanation_is_silent() -> None:
    assert explain("PS-301", "--quiet").output == explain("--quiet").output == ""


@pytest.mark.parametrize(("columns", "longest"), [(40, 40), (300, 100)])
def test_sentences_fit_the_terminal_and_are_easy_to_read_on_a_wide_one(
    columns: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = on_terminal(monkeypatch, columns=columns)
    explain("PS-301")
    lines = [COLOURS.sub("", line) for line in screen.getvalue().splitlines()]
    widths = [len(line) for line in lines if "`" not in line and not line.startswith("more: ")]
    assert 0.6 * longest < max(widths) <= longest


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("999", "there is no code 'PS-999'"),
        ("CursorExpire", "there is no code 'CursorExpire'; did you mean 'CursorExpired'?"),
        ("qqqq", "there is no code 'qqqq'; `penstock explain` lists all codes"),
        ("998", "PS-998 is not used any more: its error became PS-301"),
    ],
)
def test_an_unknown_code_is_wrong_use(text: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codes.RETIRED, "PS-998", "its error became PS-301")
    result = explain(text)
    assert (result.exit_code, sentence in " ".join(result.stderr.split())) == (ExitCode.WRONG_USE, True), result.stderr
    assert result.stderr.endswith(" (PS-102)\n")


Failing = Callable[..., Result]


@pytest.fixture
def failing() -> Failing:
    """Runs a command whose parts raise these errors."""

    def run(*raised: Exception, words: tuple[str, ...] = ()) -> Result:
        @click.command("fails")
        @click.option("--json", "as_json", is_flag=True)
        def fails(as_json: bool) -> None:
            errors = Errors()
            for number, reason in enumerate(raised):
                with errors.caught(cluster="main", topic=f"t{number}"):
                    raise reason
            CommandResult(records=[], show=lambda _: None, errors=errors.failures).finish(as_json=as_json)

        group = type(main)(name="penstock", commands={"fails": fails}, params=main.params, callback=main.callback)
        return CliRunner().invoke(group, [*words, "fails"])

    return run


def test_each_error_has_its_code_and_each_code_leads_on_once(failing: Failing) -> None:
    result = failing(CursorExpired("a"), CursorExpired("b"), TopicRecreated("c"))
    assert result.stderr == (
        f"penstock: CursorExpired: a [cluster=main topic=t0] (PS-301)\n{leads_on('PS-301')}"
        "penstock: CursorExpired: b [cluster=main topic=t1] (PS-301)\n"
        f"penstock: TopicRecreated: c [cluster=main topic=t2] (PS-304)\n{leads_on('PS-304')}"
    )


@pytest.mark.parametrize(
    ("raised", "exit_code"),
    [
        ((), ExitCode.SUCCESS),
        ((ConnectFailed("a"), ConnectFailed("b")), ExitCode.TRY_AGAIN),
        ((CursorExpired("a"), TopicRecreated("b")), ExitCode.CHOICE_NEEDED),
        ((LakeRefused("a"),), ExitCode.REFUSED),
        ((ConnectFailed("a"), CursorExpired("b")), ExitCode.FAILED),
        ((KeyError("a"),), ExitCode.FAILED),
    ],
)
def test_the_exit_code_is_that_of_the_kind_of_all_failures(
    raised: tuple[Exception, ...], exit_code: ExitCode, failing: Failing
) -> None:
    assert failing(*raised).exit_code == exit_code


def test_a_json_line_has_the_code_as_a_field_and_no_hint(failing: Failing) -> None:
    [line] = failing(CursorExpired("a"), words=("--log-format", "json")).stderr.splitlines()
    printed = json.loads(line)
    assert (printed["code"], printed["kind"], printed["message"]) == ("PS-301", "CursorExpired", "a")


def test_an_error_outside_of_a_command_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    error("lost", code="PS-301", topic="clicks")
    with configured(LogFormat.JSON, command="load"):
        error("lost", code="PS-301")
    sentence, line = capsys.readouterr().err.splitlines()
    assert (sentence, json.loads(line)["code"]) == ("penstock: clicks: lost (PS-301)", "PS-301")


def test_results_without_errors_end_with_success() -> None:
    results: list[dict[str, Any]] = [{"errors": []}, {"errors": [{"code": "PS-201"}]}]
    assert list(ends_of(results)) == [ExitCode.SUCCESS, ExitCode.TRY_AGAIN]
