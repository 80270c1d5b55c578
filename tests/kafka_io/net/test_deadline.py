"""Deadlines, on a clock that the tests set."""

import pytest

from kafka_io.errors import DeadlineExceeded
from kafka_io.net import deadline as deadline_module
from kafka_io.net.deadline import Deadline


class Clock:
    """A monotonic clock that stands still."""

    now_s = 100.0

    def monotonic(self) -> float:
        """The time at which the clock stands."""
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deadline_module, "time", clock)
    return clock


def test_the_time_left_shrinks_with_the_clock(clock: Clock) -> None:
    deadline = Deadline.after(5)
    clock.now_s = 103.0
    assert deadline.remaining_s() == 2.0


@pytest.mark.parametrize("late_s", [0.0, 0.5, 1e9])
def test_a_deadline_that_has_passed_is_an_error_and_never_a_timeout_of_zero(late_s: float, clock: Clock) -> None:
    """For a socket a timeout of 0 means "do not wait at all", and a negative one is not valid."""
    deadline = Deadline.after(5)
    clock.now_s = 105.0 + late_s
    with pytest.raises(DeadlineExceeded) as raised:
        deadline.remaining_s()
    assert raised.value.retriable
