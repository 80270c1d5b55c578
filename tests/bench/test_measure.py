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


def test_the_time_and_memory_of_a_running_child_are_counted() -> None:
    program = f"data = bytearray(b'1') * 50_000_000\n{SPIN}\nprint(len(data), flush=True)\ninput()"
    with measured() as alone:
        pass
    with (
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
        measured() as clock,
    ):
        assert child.stdout is not None
        child.stdout.readline()
    assert alone.usage is not None
    assert clock.usage is not None
    assert clock.usage.cpu_s >= 0.25
    assert clock.usage.peak_mb >= alone.usage.peak_mb + 45
    assert alone.usage.worker_mb == 0
    assert 45 <= clock.usage.worker_mb < clock.usage.peak_mb


def test_a_usage_is_read_from_the_last_line_printed() -> None:
    printed = b'something else\n{"wall_s": 1.5, "cpu_s": 2.5, "peak_mb": 3.0}\n'
    assert Usage.parse(printed) == Usage(wall_s=1.5, cpu_s=2.5, peak_mb=3.0)


def test_a_command_is_measured_with_all_processes_that_it_starts() -> None:
    parent_that_does_not_wait = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SPIN!r}])"
    command = [sys.executable, "-m", "tests.bench.whole_process", sys.executable, "-c", parent_that_does_not_wait]
    completed = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert Usage.parse(completed.stdout).cpu_s >= 0.25
