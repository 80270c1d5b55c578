"""What processes use is counted, wherever in the tree."""

import subprocess
import sys

from tests.bench.measure import Usage, measured

SPIN = "import time\nwhile time.process_time() < 0.3: pass"


def test_the_time_of_a_child_that_ended_is_counted() -> None:
    with measured() as clock:
        subprocess.run([sys.executable, "-c", SPIN], check=True)
    assert clock.usage is not None
    assert clock.usage.cpu_s >= 0.25
    assert clock.usage.wall_s >= 0.25


def test_the_time_and_memory_of_a_child_that_runs_are_counted() -> None:
    hold = f"held = bytearray(b'1') * 50_000_000\n{SPIN}\nprint(len(held), flush=True)\ninput()"
    with measured() as alone:
        pass
    with (
        subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
        measured() as clock,
    ):
        assert child.stdout is not None
        child.stdout.readline()
    assert alone.usage is not None
    assert clock.usage is not None
    assert clock.usage.cpu_s >= 0.25
    assert clock.usage.peak_mb >= alone.usage.peak_mb + 45


def test_a_usage_is_read_from_the_last_line_printed() -> None:
    printed = b'something else\n{"wall_s": 1.5, "cpu_s": 2.5, "peak_mb": 3.0}\n'
    assert Usage.parse(printed) == Usage(wall_s=1.5, cpu_s=2.5, peak_mb=3.0)


def test_a_whole_command_is_measured_with_the_processes_that_it_starts() -> None:
    leaver = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SPIN!r}])"
    command = [sys.executable, "-m", "tests.bench.whole", sys.executable, "-c", leaver]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert Usage.parse(done.stdout).cpu_s >= 0.25
