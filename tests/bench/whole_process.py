"""Measures a command until all processes that it started have ended.

`python -m tests.bench.whole_process <command ...>` prints the usage.

Spark's JVM outlives the Python process that started it. This process declares itself the reaper of orphaned children
(prctl(2), PR_SET_CHILD_SUBREAPER), so the kernel adds the time of the JVM to the time of its children.
"""

import ctypes
import os
import resource
import subprocess
import sys
import time

from tests.bench.measure import Usage

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the command, print its usage, and exit with its exit code."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    began = time.monotonic()
    code = subprocess.run(sys.argv[1:], stdout=sys.stderr, check=False).returncode
    wall = time.monotonic() - began
    _wait_for_all()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    Usage(wall_s=wall, cpu_s=spent.ru_utime + spent.ru_stime, peak_mb=spent.ru_maxrss / 1024).write()
    sys.exit(code)


def _wait_for_all() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
