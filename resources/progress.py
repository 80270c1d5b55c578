"""The type of functions that report the progress of work."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""A function that is called with how much of the work is done, and with all of it."""


def no_progress(_done: int, _total: int) -> None:
    """Report nothing."""
