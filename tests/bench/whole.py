"""A command and all that it starts, measured to the end of the last: `python -m tests.bench.whole <command ...>`.

Spark's JVM outlives the Python that started it; as the reaper of what is left behind, this process is told its time.
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
    """Run the command, print the usage, pass on its exit code."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    began = time.monotonic()
    code = subprocess.run(sys.argv[1:], stdout=sys.stderr, check=False).returncode
    wall = time.monotonic() - began
    _wait_for_all()
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    Usage(wall_s=wall, cpu_s=spent.ru_utime + spent.ru_stime, peak_mb=spent.ru_maxrss / 1024).tell()
    sys.exit(code)


def _wait_for_all() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
