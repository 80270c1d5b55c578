"""Child processes that end when their parent ends."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_STOP_S = 15.0


def dying_with_parent() -> Callable[[], None] | None:
    """A `preexec_fn` for a child process: the kernel then kills the child when the thread that started it ends.

    None on systems other than Linux, which cannot do this.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before prctl took effect, so no signal will come
            os._exit(1)

    return set_death_signal


def end(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the process, and kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
