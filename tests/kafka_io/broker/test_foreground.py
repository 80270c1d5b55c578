"""A broker in the foreground ends when it is told to, whatever it is doing at that moment."""

import subprocess
import sys

ROUNDS = """
import os, random, signal
from kafka_io.broker.foreground import _told_to_stop

for _ in range(3000):
    with _told_to_stop() as told:
        signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGTERM))
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 60e-6))
        assert told.get() == signal.SIGALRM
print("ended")
"""


def test_a_signal_ends_the_waiting_at_whatever_moment_it_comes() -> None:
    """3000 signals around the very moment in which the waiting begins."""
    done = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("ended\n", "")
