"""A process ends when it is told to, whatever it is doing at that moment."""

import subprocess
import sys

ROUNDS = """
import random, signal
from kafka_io.stopping import stopping

for _ in range(200):
    with stopping() as told:
        signal.signal(signal.SIGALRM, told.tell)
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 60e-6))
        while not told.is_told():
            pass
print("ended")
"""


def test_a_signal_ends_the_waiting_at_whatever_moment_it_comes() -> None:
    """Signals around the very moment in which the waiting begins."""
    done = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("ended\n", "")
