"""A shell completes names that are known without a network, and nothing if the settings are wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class
from click.testing import CliRunner

from pipelines.cli.main import main
from resources.settings.settings import PATH_VARIABLE
from tests.small_table import SmallTable
from tests.syntax_trees import ROOT


@pytest.fixture
def settings(small: SmallTable, tmp_path: Path) -> Path:
    """A lake with the table `clicks` of the cluster `main`, whose brokers cannot be reached."""
    file = tmp_path / "penstock.toml"
    file.write_text(
        'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[clusters.old]\nbootstrap = "127.0.0.1:1"\n'
        '[registries.schemas]\nurl = "http://127.0.0.1:1"\n'
    )
    return file


def completed(*arguments: str, prefix: str) -> list[str]:
    items = ShellComplete(main, {}, "penstock", "_PENSTOCK_COMPLETE").get_completions(list(arguments), prefix)
    return [item.value for item in items]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_made_for_the_shell(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_PENSTOCK_COMPLETE={shell}_complete" in result.stdout


def test_a_shell_without_completion_is_wrong_use() -> None:
    assert CliRunner().invoke(main, ["completion", "sh"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "prefix", "names"),
    [
        (("load", "--cluster"), "", ["main", "old"]),
        (("verify", "--cluster"), "o", ["old"]),
        (("load",), "cl", ["clicks"]),
        (("history",), "", ["clicks"]),
        (("load", "--cluster", "main"), "", ["clicks"]),
        (("load", "--cluster", "old"), "", []),
        (("load", "--cluster", "none"), "", []),
        (("history",), "x", []),
        (("load", "clicks"), "", []),  # it is on the command line already
        (("publish", "clicks", "lines.txt", "--registry"), "", ["schemas"]),
    ],
)
def test_names_are_completed(settings: Path, arguments: tuple[str, ...], prefix: str, names: list[str]) -> None:
    assert completed("--settings", str(settings), *arguments, prefix=prefix) == names


def test_wrong_settings_complete_to_nothing(tmp_path: Path) -> None:
    assert completed("--settings", str(tmp_path / "none.toml"), "load", prefix="") == []


def test_completion_does_not_ask_an_object_store(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text('lake = "s3://nowhere/lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    assert completed("--settings", str(file), "load", prefix="") == []


def test_a_name_with_control_characters_is_not_completed(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.stores.lake.Lake.topics", lambda *_: ["a\x1b[31m", "ab"])  # fault X05
    assert completed("--settings", str(settings), "load", prefix="a") == ["ab"]


@pytest.mark.parametrize(
    ("shell", "words", "number", "values"),
    [
        ("bash", "penstock load --cluster = m", 4, ["plain,main"]),
        ("bash", "penstock load --cluster =", 3, ["plain,main", "plain,old"]),
        ("zsh", "penstock load --cluster=m", 2, ["plain", "--cluster=main", "_"]),
        ("zsh", "penstock load --cluster m", 3, ["plain", "main", "_"]),
    ],
)
def test_a_value_after_an_equals_sign_is_completed(
    settings: Path, shell: str, words: str, number: int, values: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bash splits words at the sign; other shells replace the whole word, with the option in it."""
    monkeypatch.setenv(PATH_VARIABLE, str(settings))
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(number))
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    assert shell_class(main, {}, "penstock", "_PENSTOCK_COMPLETE").complete().splitlines() == values


def test_fish_gets_the_option_with_its_value(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(settings))
    monkeypatch.setenv("COMP_WORDS", "penstock load")
    monkeypatch.setenv("COMP_CWORD", "--cluster=m")
    shell_class = get_completion_class("fish")
    assert shell_class is not None
    assert shell_class(main, {}, "penstock", "_PENSTOCK_COMPLETE").complete() == "plain,--cluster=main"


@pytest.mark.slow
def test_bash_completes_commands_and_names(settings: Path, tmp_path: Path) -> None:
    """The script works in a real bash, which calls it as it does when a user presses TAB."""
    program = tmp_path / "bin" / "penstock"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom pipelines.cli.main import main\nmain()\n")
    program.chmod(0o755)
    script = """
    eval "$(penstock completion bash)"
    complete -p penstock
    for line in "penstock hist" "penstock load cl" "penstock load --cluster = o"; do
        COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
        _penstock_completion penstock
        echo "${COMPREPLY[@]}"
    done
    """
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, PATH_VARIABLE: str(settings), "PYTHONPATH": str(ROOT)}
    completed = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    registered, *values = completed.stdout.splitlines()
    assert "-F _penstock_completion penstock" in registered
    assert values == ["history", "clicks", "old"]
