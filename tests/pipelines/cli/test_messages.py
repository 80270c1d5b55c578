"""An error is one sentence in Penstock's words; the texts of other programs appear only with --debug (fault U11)."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka_io.errors import system_reason
from pipelines.cli.main import main
from resources.errors import LakeUnavailable, sentence_of
from resources.explanations.explanation import ExitCode
from tests.pipelines.cli.walking import leads_on
from tests.small_table import SmallTable

Penstock = Callable[..., Result]
SETTINGS = 'lake = "lake"\n[clusters.main]\nzookeeper = "127.0.0.1:1"\n'
MANY_DIGITS = "9" * 5000


def invoke(folder: Path, *arguments: str) -> Result:
    file = folder / "penstock.toml"
    file.write_text(SETTINGS)
    return CliRunner().invoke(main, ["--settings", str(file), *arguments])


def test_the_text_of_an_unexpected_error_appears_only_with_debug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a detail")

    monkeypatch.setattr("resources.stores.lake.Lake.topics", broken)
    plain = invoke(tmp_path, "verify", "--all")
    assert plain.exit_code == 1
    assert plain.stderr == (
        "penstock: KeyError: an unexpected error; `penstock --debug` with the same command shows its details "
        f"[cluster=main] (PS-901)\n{leads_on('PS-901')}"
    )
    debug = CliRunner().invoke(main, ["--debug", "--settings", str(tmp_path / "penstock.toml"), "verify", "--all"])
    assert "KeyError: 'a detail'" in debug.stderr


def test_an_error_that_may_pass_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object) -> None:
        raise LakeUnavailable("the store does not answer\x1b[31m")

    monkeypatch.setattr("resources.stores.lake.Lake.topics", unavailable)
    assert invoke(tmp_path, "verify", "--all").stderr == (  # fault X05
        "penstock: LakeUnavailable: the store does not answer\\x1b[31m [cluster=main]; "
        f"the same command can succeed later (PS-401)\n{leads_on('PS-401')}"
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (IsADirectoryError(21, "Is a directory", "/lake"), "/lake: is a directory"),
        (FileNotFoundError(2, "Failed to open local file 'x'. Detail: [errno 2] y"), "no such file or directory"),
        (ConnectionRefusedError(111, "Connection refused"), "connection refused"),
        (TimeoutError(110, "Connection timed out"), "no answer in time"),
    ],
    ids=str,
)
def test_an_error_of_the_system_is_its_reason_without_number(error: OSError, sentence: str) -> None:
    assert sentence_of(error) == sentence
    assert sentence.endswith(system_reason(error))


def test_a_broker_names_the_port_that_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        port = address.partition(":")[2]
        result = invoke(tmp_path, "broker", "--broker-id", "1", "--port", port, "--data-dir", str(tmp_path / "b"))
    sentence = f"penstock: OSError: {address}: address already in use (PS-712)\n"
    assert (result.exit_code, result.stderr) == (1, sentence + leads_on("PS-712"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("clean", "--all", "--keep-days", "nan"),
        ("clean", "--all", "--keep-days", "inf"),
        ("clean", "--all", "--keep-days", "1e400"),
        ("clean", "--all", "--keep-days", "999999999"),
        ("history", "clicks", "--limit", "9" * 30),
        ("history", "clicks", "--limit", MANY_DIGITS),
        ("publish", "clicks", "-", "--batch", "9" * 30),
        ("broker", "--port", "0", "--data-dir", "x", "--broker-id", "9" * 30),
        ("broker", "--port", "0", "--data-dir", "x", "--broker-id", "1", "--partitions", "9" * 30),
        ("load", "clicks", "--from", MANY_DIGITS),
        ("load", "clicks", "--from", "-999999999d"),
        ("tail", "clicks", "--from", MANY_DIGITS),
        ("tail", "clicks", "--partition", MANY_DIGITS),
        ("rewind", "clicks", "--to", "-999999999d"),
        ("rewind", "clicks", "--version", MANY_DIGITS),
    ],
)
def test_numbers_that_nothing_can_use_are_wrong_use(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = invoke(tmp_path, *arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exceeds the limit" not in result.stderr  # Python's own sentence about numbers with many digits


def test_a_rewind_to_a_version_far_beyond_the_newest_is_refused(penstock: Penstock) -> None:
    result = penstock("rewind", "clicks", "--version", "9" * 30, "--yes")
    assert result.exit_code == 1
    assert f"RewindRefused: the table has no version {'9' * 30}; its newest is version 2" in result.stderr


def test_a_damaged_file_is_named_with_the_command_that_repairs_it(penstock: Penstock, small: SmallTable) -> None:
    file = min(Path(small.uri).glob("date=*/*.parquet"))
    file.write_bytes(b"x" * file.stat().st_size)
    result = penstock("verify", "clicks")
    assert result.exit_code == ExitCode.NOT_PROVEN
    path = file.relative_to(small.uri)
    assert (
        f"penstock: clicks: the data file {path} is damaged: move it away, and `penstock replay clicks --from "
        "earliest --to latest` fetches its rows again (PS-409)\n"
    ) in result.stderr
    assert "Parquet" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("command", [("load", "--all"), ("load", "a", "b"), ("status",), ("topics",)])
def test_a_command_says_once_that_it_tries_to_reach_a_cluster_again(
    command: tuple[str, ...], log_format: str, tmp_path: Path
) -> None:  # fault F02
    with socket.create_server(("127.0.0.1", 0)) as unused:
        unused_port = unused.getsockname()[1]
    settings = tmp_path / "penstock.toml"
    settings.write_text(
        f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{unused_port}"\n[caps]\nattempts = 3\n'
    )
    arguments = ["--settings", str(settings), "--log-format", log_format, *command]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == ExitCode.TRY_AGAIN
    [line] = [line for line in result.stderr.splitlines() if "trying again" in line]
    sentence = (
        f"cannot reach 127.0.0.1:{unused_port} (cannot connect to port {unused_port} (127.0.0.1: connection refused)), "
        "trying again (2 of 3, up to 60 s)"
    )
    assert line == f"warning: {sentence}" if log_format == "text" else f'"message": "{sentence}"' in line
    assert "trying again" not in CliRunner().invoke(main, [*arguments, "--quiet"]).stderr or log_format == "json"
