"""Runs a command that prints a secret, for example the client of a vault.

No shell reads the command line, so a `$` or a `;` in it means nothing. What the command prints is never part of an
error or a log, neither its output nor its error output: both can contain the secret (fault X01).
"""

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_io.errors import system_reason

TIMEOUT_S = 30.0
_CHUNK_BYTES = 4096


class CommandFailed(Exception):
    """A command printed no usable secret. Its text says why."""


def is_command_line(text: str) -> bool:
    """Whether the text names a program, by an absolute path or by a name for PATH, with or without arguments."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        return False
    return bool(words and words[0]) and text.isprintable() and (Path(words[0]).is_absolute() or "/" not in words[0])


def output_of(command_line: str, *, max_bytes: int) -> bytes:
    """Run the command and return its output. Of a longer output, return the first `max_bytes`.

    Raises:
        CommandFailed: the program does not exist, ends with an error, or needs more than TIMEOUT_S.
    """
    # The error is raised here, because a traceback with the locals of the other functions would show the output.
    result = _output_or_error(shlex.split(command_line), max_bytes, TIMEOUT_S)
    if isinstance(result, CommandFailed):
        raise result
    return result


def _output_or_error(words: list[str], max_bytes: int, timeout_s: float) -> bytes | CommandFailed:
    deadline_s = time.monotonic() + timeout_s
    try:
        with _running(words) as process:
            output = _read(process, max_bytes, deadline_s)
            if len(output) < max_bytes:
                process.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        return CommandFailed(f"the command did not end within {timeout_s:g} s")
    except OSError as error:
        return CommandFailed(f"the command cannot be started: {system_reason(error)}")
    code = process.returncode
    if code and len(output) < max_bytes:
        end = f"ended with exit code {code}" if code > 0 else f"was killed by signal {-code}"
        return CommandFailed(f"the command {end}; run it by hand as the same user to see why")
    return output


@contextmanager
def _running(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """The running command. If it still runs at the end of the block, it is killed with all its children."""
    with subprocess.Popen(  # noqa: S603 - the settings file names the command, as that of alerts
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], max_bytes: int, deadline_s: float) -> bytes:
    """The output, up to its end or to `max_bytes`.

    Raises:
        TimeoutExpired: the deadline passes first.
    """
    assert process.stdout is not None
    output = b""
    while len(output) < max_bytes:
        remaining_s = max(0.0, deadline_s - time.monotonic())
        if not select.select([process.stdout], [], [], remaining_s)[0]:
            raise subprocess.TimeoutExpired(process.args, remaining_s)
        chunk = os.read(process.stdout.fileno(), min(_CHUNK_BYTES, max_bytes - len(output)))
        if not chunk:
            break
        output += chunk
    return output
