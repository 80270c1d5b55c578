"""A shell completes names that are known without a network, and nothing if the settings are wrong."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from pipelines.cli.main import main
from tests.small_table import SmallTable


@pytest.fixture
def settings(small: SmallTable, tmp_path: Path) -> Path:
    """A lake with the table `clicks` of the cluster `main`, whose brokers cannot be reached."""
    file = tmp_path / "penstock.toml"
    file.write_text(
        'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[clusters.old]\nbootstrap = "127.0.0.1:1"\n'
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
    monkeypatch.setattr("resources.lake.Lake.topics", lambda *_: ["a\x1b[31m", "ab"])  # fault X05
    assert completed("--settings", str(settings), "load", prefix="a") == ["ab"]
