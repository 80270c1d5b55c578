"""With `--quiet` a command that succeeds prints nothing; a command that fails prints its errors."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka_io.model import BrokerPartition
from pipelines.cli.main import main
from pipelines.cli.output import terminal
from resources.explanations.explanation import ExitCode
from tests.pipelines.cli.broker_world import Make
from tests.small_table import SmallTable


@pytest.mark.parametrize(
    "words",
    [
        ("load", "views", "--quiet"),
        ("load", "--all", "-q"),
        ("status", "-q"),
        ("topics", "-q"),
        ("clean", "--all", "-q"),
        ("history", "clicks", "-q"),
        ("offsets", "export", "--all", "-q"),
    ],
)
def test_a_success_is_silent(words: tuple[str, ...], make: Make) -> None:
    world = make()
    result = world.penstock(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert world.penstock("status").stdout


def test_a_warning_is_not_printed_and_a_result_in_json_is(make: Make) -> None:
    world = make(settings_text='[topics]\nallow = "none"\n')
    assert "nothing to load" in world.penstock("load", "--all").stderr
    for words in (("load", "--all", "-q"), ("--log-format", "json", "load", "--all", "-q")):
        assert world.penstock(*words).output == ""
    result = world.penstock("load", "--all", "-q", "--json")
    assert json.loads(result.stdout)["exit_code"] == 0
    assert result.stderr == ""


def test_the_errors_of_a_result_are_printed(penstock: Callable[..., Result], small: SmallTable) -> None:
    assert penstock("verify", "clicks", "-q").output == ""
    min(Path(small.uri).glob("date=*/*.parquet")).unlink()
    result = penstock("verify", "clicks", "-q")
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_PROVEN, "")
    assert str(BrokerPartition(0, 0)) in result.stderr


def test_the_error_of_a_cluster_is_printed(tmp_path: Path) -> None:
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[caps]\nattempts = 1\n')
    result = CliRunner().invoke(main, ["--settings", str(settings), "status", "-q"])
    assert (result.exit_code, result.stdout) == (ExitCode.TRY_AGAIN, "")
    assert "ConnectFailed" in result.stderr
    assert not terminal.is_quiet()


def test_a_check_of_the_settings_prints_what_failed_only(tmp_path: Path) -> None:
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    quiet = ["--settings", str(settings), "config", "check", "-q"]
    passed = CliRunner().invoke(main, [*quiet, "--offline"])
    assert (passed.exit_code, passed.output) == (0, "")
    settings.write_text("lake = 1\n")
    broken = CliRunner().invoke(main, quiet)
    assert broken.exit_code == ExitCode.WRONG_USE
    assert broken.stdout.splitlines()[0].startswith("failed settings: ")
    assert "ok  " not in broken.stdout
