"""Deadlines, on a clock that the tests turn."""

import pytest

from kafka_io.errors import DeadlineExceeded
from kafka_io.net.deadline import Deadline


def test_a_deadline_counts_down_whatever_is_waited_for_in_between() -> None:
    now = [100.0]
    deadline = Deadline.after(5, lambda: now[0])
    now[0] = 103.0
    assert deadline.left() == 2.0


@pytest.mark.parametrize("late_s", [0.0, 0.5, 1e9])
def test_a_deadline_that_has_come_is_never_a_timeout_of_zero(late_s: float) -> None:
    """A timeout of 0 would mean "do not wait at all" to a socket, a negative one is refused by it."""
    now = [100.0]
    deadline = Deadline.after(5, lambda: now[0])
    now[0] = 105.0 + late_s
    with pytest.raises(DeadlineExceeded) as caught:
        deadline.left()
    assert caught.value.retriable
