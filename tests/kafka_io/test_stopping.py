"""A signal stops the process, at whatever moment it arrives."""

import subprocess
import sys

ROUNDS = """
import random, signal
from kafka_io.stopping import stop_signals

for _ in range(200):
    with stop_signals() as stop_requested:
        signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGTERM))
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 60e-6))
        while not stop_requested():
            pass
print("ended")
"""


def test_a_signal_ends_the_wait_at_whatever_moment_it_arrives() -> None:
    """The signals arrive around the moment in which the wait begins."""
    process = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, timeout=120, check=False)
    assert (process.stdout, process.stderr) == ("ended\n", "")
