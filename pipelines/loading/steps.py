"""Named steps of a load, for the tests that kill it at each. In production `step` does nothing."""

import os
import signal

KILL_AT = "PENSTOCK_TEST_KILL_AT"

STEPS = (
    "planned",
    "fetch began",
    "batch fetched",
    "file written",
    "file closed",
    "fetched",
    "files checked",
    "before log entry",
    "after log entry",
    "loaded",
)


def step(name: str) -> None:
    """Pass the step `name`; a test that named it in the environment has the process killed here, as by `kill -9`."""
    if os.environ.get(KILL_AT) == name:
        os.kill(os.getpid(), signal.SIGKILL)
