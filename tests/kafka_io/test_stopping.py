"""A signal stops the process, at whatever moment it arrives."""

import subprocess
import sys
import threading

import pytest

from kafka_io.brokers.retry import Backoff, retrying
from kafka_io.errors import ConnectFailed
from kafka_io.stopping import Stopped, check_stop, sleep, stops_with

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


def test_an_event_ends_the_waits_of_its_thread_only() -> None:
    stop = threading.Event()
    with stops_with(stop):
        check_stop()
        sleep(0)
        stop.set()
        with pytest.raises(Stopped):
            check_stop()
        with pytest.raises(Stopped):
            sleep(3600)
    check_stop()
    sleep(0)


@pytest.mark.timeout(30)
def test_a_thread_that_is_asked_to_stop_tries_no_longer() -> None:
    stop, attempts = threading.Event(), list[int]()

    def fail() -> None:
        attempts.append(len(attempts))
        stop.set()
        raise ConnectFailed("nobody is there")

    with stops_with(stop), pytest.raises(Stopped):
        retrying(fail, Backoff(first_s=3600, max_s=3600))
    assert attempts == [0]
