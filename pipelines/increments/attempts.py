"""Repeats work on an output that another process was first to commit, or whose store failed for a time."""

from collections.abc import Callable
from typing import TypeVar

from resources.errors import LoadError
from resources.failpoints import failpoint

T = TypeVar("T")

MAX_ATTEMPTS = 5
_FIRST_WAIT_S = 0.2


def with_attempts(act: Callable[[], T], attempts: int, *, sleep: Callable[[float], None]) -> T:
    """Call `act` and return its result. After a retriable error call it again, until the attempts are used up.

    Raises:
        ValueError: there is no attempt.
        LoadError: the error of the last attempt, or the first error that is not retriable.
    """
    if attempts < 1:
        raise ValueError("attempts must be positive")
    for attempt in range(attempts - 1):
        try:
            return act()
        except LoadError as error:
            if not error.retriable:
                raise
        failpoint("attempt failed")
        sleep(_FIRST_WAIT_S * 2**attempt)
    return act()
