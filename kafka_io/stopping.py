"""Signals to stop as a value that the main thread waits for, and the end of the waits of other threads.

A signal interrupts only the main thread. A thread that works for it enters `stops_with`, and then its waits between
attempts end when the main thread sets an event.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from queue import Empty, SimpleQueue

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# A signal that arrives just before the wait begins does not interrupt it; its handler runs when the wait is over.
_POLL_S = 0.2
_local = threading.local()


class Stopped(BaseException):
    """The thread was asked to stop. As with KeyboardInterrupt, this is no error of what it was doing."""


@contextmanager
def stops_with(stop: threading.Event) -> Iterator[None]:
    """In the `with` block, `check_stop` and `sleep` raise Stopped in this thread when the event is set."""
    _local.stop = stop
    try:
        yield
    finally:
        del _local.stop


def check_stop() -> None:
    """Do nothing, unless this thread was asked to stop.

    Raises:
        Stopped: it was.
    """
    stop = getattr(_local, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


def sleep(seconds: float) -> None:
    """Wait for so long, or until this thread is asked to stop.

    Raises:
        Stopped: it was.
    """
    stop = getattr(_local, "stop", None)
    if stop is None:
        time.sleep(seconds)
    elif stop.wait(seconds):
        raise Stopped


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """A function that returns whether a signal to stop arrived; each call waits for one up to 0.2 s.

    In the `with` block, SIGTERM and SIGINT do nothing else. Its end restores their handlers. Only the main thread may
    call this.
    """
    # A threading.Event would deadlock: its lock is not reentrant, and the handler can interrupt the `wait` that holds
    # it. `SimpleQueue.put` is reentrant.
    received: SimpleQueue[int] = SimpleQueue()

    def handle(number: int, _frame: object) -> None:
        received.put(number)

    def stop_requested() -> bool:
        try:
            received.get(timeout=_POLL_S)
        except Empty:
            return False
        return True

    previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop_requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run_foreground(server: AbstractContextManager[object], ready: Callable[[], str]) -> None:
    """Run a server until SIGTERM or SIGINT arrives, then stop it. Call it from the main thread only.

    When clients are served, it prints the line that `ready` returns. It raises what the start of the server does.
    """
    with stop_signals() as stop_requested, server:
        sys.stdout.write(f"{ready()}\n")
        sys.stdout.flush()
        while not stop_requested():
            pass
