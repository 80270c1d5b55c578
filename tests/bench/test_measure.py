"""The usage of a process includes that of all processes below it."""

import subprocess
import sys

from tests.bench.measure import Usage, measured

SPIN = "import time\nwhile time.process_time() < 0.3: pass"


def test_the_time_of_an_ended_child_is_counted() -> None:
    with measured() as clock:
        subprocess.run([sys.executable, "-c", SPIN], check=True)
    assert clock.usage is not None
    assert clock.usage.cpu_s >= 0.25
    assert clock.usage.wall_s >= 0.25


_MEASURES_A_CHILD = """
import subprocess, sys
from tests.bench.measure import measured
with measured() as alone:
    pass
with subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=-1, stdout=-1) as child, measured() as clock:
    child.stdout.readline()
for usage in (alone.usage, clock.usage):
    print(usage.cpu_s, usage.peak_mb, usage.worker_mb)
"""


def test_the_time_and_memory_of_a_running_child_are_counted() -> None:
    """In a process of its own, because a process of tests has other children, such as servers."""
    child = f"data = bytearray(b'1') * 50_000_000\n{SPIN}\nprint(len(data), flush=True)\ninput()"
    command = [sys.executable, "-c", _MEASURES_A_CHILD, child]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    alone, clock = (list(map(float, line.split())) for line in printed.splitlines())
    assert clock[0] >= 0.25
    assert clock[1] >= alone[1] + 45
    assert alone[2] == 0
    assert 45 <= clock[2] < clock[1]


def test_a_usage_is_read_from_the_last_line_printed() -> None:
    printed = b'something else\n{"wall_s": 1.5, "cpu_s": 2.5, "peak_mb": 3.0}\n'
    assert Usage.parse(printed) == Usage(wall_s=1.5, cpu_s=2.5, peak_mb=3.0)


def test_a_command_is_measured_with_all_processes_that_it_starts() -> None:
    parent_that_does_not_wait = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SPIN!r}])"
    command = [sys.executable, "-m", "tests.bench.whole_process", sys.executable, "-c", parent_that_does_not_wait]
    completed = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert Usage.parse(completed.stdout).cpu_s >= 0.25
