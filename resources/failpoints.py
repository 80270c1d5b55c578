"""Failpoints: named places in the code at which crash tests end the process. Without such a test they do nothing."""

import os
import signal
from collections import Counter
from pathlib import Path

KILL_AT = "PENSTOCK_TEST_KILL_AT"
"""The variable that says where and how a process ends: `[ending:]failpoint[:n]`, at the n-th pass. The ending is kill,
stop, fault, exit or raise. Several such texts are separated by commas."""
ONCE = "PENSTOCK_TEST_KILL_ONCE"
"""The variable with a folder, in which the process that ends writes its id to a file named after the text. Of several
processes with the same text, only the first ends."""
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "fault": signal.SIGSEGV}

_pass_counts: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """End the process here if a test named this failpoint in the environment."""
    if KILL_AT in os.environ:
        _pass(name)


def _pass(name: str) -> None:
    _pass_counts[name] += 1
    for text in os.environ[KILL_AT].split(","):
        ending, failpoint_name, nth = parsed(text)
        if (name, _pass_counts[name]) == (failpoint_name, nth) and _is_first(text):
            _end(ending, name)


def parsed(text: str) -> tuple[str, str, int]:
    """Parse a text of KILL_AT: how the process ends, at which failpoint, and at which pass of it."""
    parts = text.split(":")
    ending = parts.pop(0) if parts[0] in {*_SIGNALS, "exit", "raise"} else "kill"
    return ending, parts[0], int(parts[1]) if len(parts) > 1 else 1


def _is_first(text: str) -> bool:
    if ONCE not in os.environ:
        return True
    try:
        with Path(os.environ[ONCE], text).open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True


def _end(ending: str, name: str) -> None:
    if ending == "raise":
        raise MemoryError(name)
    if ending == "exit":
        os._exit(1)
    os.kill(os.getpid(), _SIGNALS[ending])
