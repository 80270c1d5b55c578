"""Being told to stop: SIGTERM and SIGINT as a value that the main thread waits for."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# A signal that comes just before the waiting begins does not interrupt it; its handler runs when this is over.
_POLL_S = 0.2


class Stopping:
    """Whether the process was told to stop.

    Not an event: a handler that interrupts its `wait` at the wrong moment would wait for the lock it interrupted.
    """

    def __init__(self) -> None:
        self._told: SimpleQueue[int] = SimpleQueue()

    def tell(self, number: int, _frame: object = None) -> None:
        """Take note of a signal; it may interrupt anything."""
        self._told.put(number)

    def is_told(self) -> bool:
        """Whether a signal came; it waits a moment for one."""
        try:
            self._told.get(timeout=_POLL_S)
        except Empty:
            return False
        return True


@contextmanager
def stopping() -> Iterator[Stopping]:
    """Takes the place of the handlers of SIGTERM and SIGINT, which come back at the end; from the main thread only."""
    told = Stopping()
    before = {number: signal.signal(number, told.tell) for number in _SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
