"""Does work in a fork of this process: it begins with all modules imported, and what it changes is gone afterwards."""

import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

_MAX_DATA_BYTES = 6 << 30
"""The memory of a fork. A mutant can collect rows without end."""
_FAILED = 100


class ForkFailed(Exception):
    """The work raised an exception, which is on standard error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkResult:
    """The end of a fork.

    Args:
        code: what the work returned, or minus the number of the signal that ended the fork.
        report: what the work wrote.
    """

    code: int
    report: bytes


def forked(work: Callable[[BinaryIO], int]) -> ForkResult:
    """Do `work`, which writes its report to the given file, in a fork.

    Processes that the work started end with the fork.

    Raises:
        ForkFailed: the work raised an exception.
    """
    with tempfile.TemporaryFile(buffering=0) as report:
        process = os.fork()
        if process == 0:
            os._exit(_code_of(work, report))
        try:
            _, status = os.waitpid(process, 0)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        if code == _FAILED:
            raise ForkFailed
        report.seek(0)
        return ForkResult(code=code, report=report.read())


def _code_of(work: Callable[[BinaryIO], int], report: BinaryIO) -> int:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_DATA_BYTES, _MAX_DATA_BYTES))
    try:
        return work(report)
    except BaseException:  # noqa: BLE001 - the parent raises ForkFailed
        traceback.print_exc(file=sys.__stderr__)
        return _FAILED
