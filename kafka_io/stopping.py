"""SIGTERM and SIGINT as a value that the main thread waits for."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# A signal that arrives just before the wait begins does not interrupt it; its handler runs when the wait is over.
_POLL_S = 0.2


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
