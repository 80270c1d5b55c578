"""Named steps of all that writes to a table, for the tests that end it at each. In production `step` does nothing."""

import os
import signal
from collections import Counter

KILL_AT = "PENSTOCK_TEST_KILL_AT"
"""Where a process ends, and how: `[how:]step[:n]`, at the n-th time it passes the step. `how` is one of HOWS. Several
are parted by commas."""
ONCE = "PENSTOCK_TEST_KILL_ONCE"
"""A folder in which the process that ends leaves its id, in a file named after what it was told. Of all processes that
are told the same, only the first one ends."""
HOWS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "fault": signal.SIGSEGV, "exit": None, "raise": None}

STEPS = (
    "discovered",
    "no table found",
    "table made",
    "table opened",
    "bounds known",
    "before cut entry",
    "after cut entry",
    "planned",
    "fetch began",
    "batch fetched",
    "file opened",
    "file written",
    "file closed",
    "file synced",
    "facts sent",
    "fetched",
    "replay planned",
    "replay staged",
    "replay compared",
    "before replay entry",
    "after replay entry",
    "before rewind entry",
    "after rewind entry",
    "files checked",
    "before log entry",
    "log entry written",
    "after log entry",
    "clash seen",
    "built anew",
    "log entry found",
    "log entry synced",
    "loaded",
    "mirrored",
    "before compaction",
    "compaction announced",
    "after compaction",
    "before clean",
    "file cleaned",
)

_passed: Counter[str] = Counter()


def step(name: str) -> None:
    """Pass the step `name`; a test that named it in the environment has the process end here."""
    if KILL_AT in os.environ:
        _pass(name)


def _pass(name: str) -> None:
    _passed[name] += 1
    for told in os.environ[KILL_AT].split(","):
        how, at, nth = parsed(told)
        if (name, _passed[name]) == (at, nth) and _is_first(told):
            _end(how, name)


def parsed(told: str) -> tuple[str, str, int]:
    """How to end, at which step, and at which passing of it."""
    parts = told.split(":")
    how = parts.pop(0) if parts[0] in HOWS else "kill"
    return how, parts[0], int(parts[1]) if len(parts) > 1 else 1


def _is_first(told: str) -> bool:
    if ONCE not in os.environ:
        return True
    try:
        file = os.open(f"{os.environ[ONCE]}/{told}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    os.write(file, str(os.getpid()).encode())
    os.close(file)
    return True


def _end(how: str, name: str) -> None:
    number = HOWS[how]
    if number is not None:
        os.kill(os.getpid(), number)
    elif how == "exit":
        os._exit(1)
    else:
        raise MemoryError(name)
