"""Child processes that never outlive us."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_STOP_S = 15.0


def dying_with_parent() -> Callable[[], None] | None:
    """What a new child does so that the kernel kills it when the thread that made it ends; None if it cannot be had."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return tie


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, and kill it if it does not in time."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
