"""A secret is what a command prints. Nothing that the command prints is shown, and it cannot run for ever."""

import os
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_io.errors import SecretMissing
from kafka_io.net import secret_command
from kafka_io.net.secret import SecretReference
from tests.kafka_io.net.test_canary import CANARY, assert_silent


def shell(script: str) -> SecretReference:
    """A reference to what a shell script prints."""
    return SecretReference("command", f"sh -c {shlex.quote(script)}")


def program(code: str) -> SecretReference:
    """A reference to what Python code prints."""
    return SecretReference("command", f"{sys.executable} -S -c {shlex.quote(code)}")


def test_the_command_runs_each_time_and_its_last_line_ends_are_no_part_of_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    for content, secret in (("one", b"one"), ("two\n", b"two"), ("three \r\n\n", b"three ")):
        file.write_text(content)
        assert SecretReference("command", f"cat {file}").read().reveal() == secret


def test_no_shell_reads_the_command_line() -> None:
    assert SecretReference.parse("command:echo '$HOME; x' `id`").read().reveal() == b"$HOME; x `id`"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (f"echo {CANARY}; echo {CANARY} >&2; exit 3", "the command ended with exit code 3; run it by hand"),
        (f"echo {CANARY}; kill -9 $$", "the command was killed by signal 9"),
        ("echo", "is empty"),
        ("yes canary-tweet-tweet", "is larger than 65536 bytes"),
    ],
)
def test_a_command_that_prints_no_secret_is_an_error_without_its_output(
    script: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:  # fault X01
    reference = shell(script)
    with pytest.raises(SecretMissing, match=message) as raised:
        reference.read()
    # The command line itself is a setting, which is shown.
    assert CANARY not in str(raised.value).replace(str(reference), "")
    assert capfd.readouterr() == ("", "")


def test_no_traceback_contains_the_output_of_a_failed_command(tmp_path: Path) -> None:  # fault X01
    (tmp_path / "secret").write_text(CANARY)
    with pytest.raises(SecretMissing) as raised:
        shell(f"cat {tmp_path}/secret; exit 1").read()
    assert_silent(raised.value)


def test_a_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(
        SecretMissing, match="command:penstock-none x cannot be read: the command cannot be started: no"
    ):
        SecretReference.parse("command:penstock-none x").read()


@pytest.mark.slow
@pytest.mark.parametrize("script", ["sleep 60 & echo canary; wait", "echo canary; exec >/dev/null; sleep 60"])
def test_a_command_that_does_not_end_is_killed_with_its_children(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_command, "TIMEOUT_S", 0.5)
    started = time.monotonic()
    with pytest.raises(SecretMissing, match=r"did not end within 0\.5 s"):
        shell(f"echo $$ > {tmp_path}/pid; {script}").read()
    assert time.monotonic() - started < 20
    group = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 20
    with suppress(ProcessLookupError):  # no process of the group is left
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.02)
        pytest.fail("a process of the command still runs")


def test_a_command_cannot_wait_for_input() -> None:
    assert program("import sys; print(len(sys.stdin.read()))").read().reveal() == b"0"
