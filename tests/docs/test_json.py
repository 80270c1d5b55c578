"""Every command prints JSON of the documented shape, whatever its end (fault U08)."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from pipelines.cli.main import main
from pipelines.cli.output_schema import OUTPUT, schema
from resources.explanations.codes import code_of_kind
from resources.explanations.explanation import ExitCode
from tests.docs.conftest import World
from tests.docs.test_commands import has_no_end
from tests.pipelines.cli.walking import commands, examples_of, help_of, words_of

LEAVES = [(path, command) for path, command in commands() if not isinstance(command, click.Group)]
WITH_JSON = [path for path, command in LEAVES if any("--json" in option.opts for option in command.params)]
EXAMPLES = [
    example
    for path in WITH_JSON
    for example in examples_of(help_of(path))
    if not has_no_end(example) and path[-1] not in {"init", "tail", "rewind"} and "--csv" not in example
]
DEAD = 'lake = "lake"\n[clusters.away]\nbootstrap = "127.0.0.1:1"\n[caps]\nattempts = 1\nrequest_timeout_s = 1\n'


def penstock(*words: str) -> tuple[Result, Any]:
    """Run a command with `--json`. Its output has no field that the schema does not describe."""
    result = CliRunner().invoke(main, [*words, *([] if "--json" in words else ["--json"])])
    OUTPUT.validate_json(result.stdout, strict=True, extra="forbid")
    printed = json.loads(result.stdout)
    assert printed["exit_code"] == result.exit_code
    return result, printed


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_output_of_every_example_has_the_documented_shape(example: str, world: World) -> None:
    result, printed = penstock(*words_of(example))
    assert (result.exit_code, printed["errors"]) == (0, [])
    assert " ".join(words_of(example)).startswith(printed["command"])


@pytest.mark.parametrize(("port", "is_written"), [(None, True), (1, False)])
def test_the_output_of_init_has_the_documented_shape(port: int | None, is_written: bool, world: World) -> None:
    address = f"127.0.0.1:{port or world.port}"
    _, printed = penstock("--settings", "new.toml", "init", "--bootstrap", address, "--lake", "lake")
    assert [result["written"] for result in printed["results"]] == [is_written]


def test_the_output_of_a_rewind_has_the_documented_shape(world: World) -> None:
    _, printed = penstock("rewind", "clicks", "--version", "1", "--yes")
    assert [rewound["target"] for rewound in printed["results"]] == [1]


@pytest.mark.parametrize("path", WITH_JSON, ids=" ".join)
def test_wrong_use_of_every_command_is_json_too(path: tuple[str, ...]) -> None:
    result, printed = penstock(*path[1:], "--nonsense")
    assert (result.exit_code, printed["command"], printed["results"]) == (2, " ".join(path[1:]), [])
    assert [error["kind"] for error in printed["errors"]] == ["NoSuchOption"]
    assert "--nonsense" in printed["errors"][0]["message"]


@pytest.mark.parametrize("words", [("nonsense",), ("--nonsense", "load"), ("load",), ("broker",)])
def test_wrong_use_of_no_known_command_is_json_too(words: tuple[str, ...], world: World) -> None:
    result, printed = penstock(*words)
    assert (result.exit_code, len(printed["errors"])) == (2, 1)


def test_an_interrupted_command_is_json_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: click.Context) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.commands["verify"], "invoke", interrupted)
    result, printed = penstock("verify", "--all")
    assert (result.exit_code, printed["errors"][0]["message"]) == (ExitCode.INTERRUPTED, "interrupted")
    assert printed["errors"][0]["code"] == "PS-902"


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (("history", "orders"), 2, "UsageError"),
        (("rewind", "clicks", "--version", "99", "--yes"), 1, "RewindRefused"),
        (("rewind", "clicks", "--version", "1"), 2, "UsageError"),
        (("replay", "clicks", "--partition", "0", "--from", "0", "--to", "99999"), 1, "ReplayRefused"),
        (("offsets", "import", "clicks", "--from", "group:old-loader"), 1, "ImportRefused"),
        (("tail", "nosuch", "--until", "latest"), 2, "UsageError"),
    ],
)
def test_an_error_of_a_command_is_an_object(words: tuple[str, ...], code: int, kind: str, world: World) -> None:
    result, printed = penstock(*words)
    assert (result.exit_code, [error["kind"] for error in printed["errors"]]) == (code, [kind])
    [error] = printed["errors"]
    assert error["message"]
    assert error["code"] == code_of_kind(kind)


@pytest.mark.parametrize("command", ["load --all", "status", "topics", "config check"])
def test_a_cluster_that_does_not_answer_does_not_stop_the_others(command: str, world: World) -> None:  # fault U04
    text = world.settings.read_text()
    world.settings.write_text(DEAD + text.partition("\n")[2])
    result, printed = penstock(*command.split())
    assert result.exit_code == ExitCode.TRY_AGAIN
    assert [error["kind"] for error in printed["errors"]] == ["ConnectFailed"]
    if command != "config check":
        assert printed["errors"][0]["cluster"] == "away"
        assert {"clicks", "views"} <= {result["topic"] for result in printed["results"]}
        assert "127.0.0.1:1" in result.stderr


@pytest.mark.parametrize("command", ["verify --all", "verify --all --deep", "clean --all --delete"])
def test_a_table_that_cannot_be_read_does_not_stop_the_others(command: str, world: World) -> None:  # fault U03
    log = world.home / "lake" / "old" / "clicks" / "_delta_log"
    max(log.glob("*.json")).write_text("{")
    result, printed = penstock(*command.split())
    assert result.exit_code == 1
    assert [error["topic"] for error in printed["errors"]] == ["clicks"]
    assert "views" in {result["topic"] for result in printed["results"]}
    for_people = CliRunner().invoke(main, command.split())
    assert for_people.exit_code == 1
    assert "views" in for_people.stdout
    assert "clicks" in for_people.stderr


def test_a_number_that_is_no_count_has_its_unit_in_its_name() -> None:
    """People get units with the numbers; programs get plain numbers."""
    units = ("seconds", "_s", "_ms", "per_second", "share")
    shapes = [shape for shape in schema()["$defs"].values() if "properties" in shape]
    numbers = {
        name for shape in shapes for name, type_ in shape["properties"].items() if '"number"' in json.dumps(type_)
    }
    assert {"late_s", "seconds"} <= numbers
    assert [name for name in numbers if not name.endswith(units)] == []


def test_wrong_settings_are_json_too(tmp_path: Path) -> None:
    result, printed = penstock("--settings", str(tmp_path / "none.toml"), "status")
    assert (result.exit_code, [error["kind"] for error in printed["errors"]]) == (2, ["SettingsError"])
