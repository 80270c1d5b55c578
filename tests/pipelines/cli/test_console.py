"""The output for people: durations have two units at most."""

import pytest

from pipelines.cli.console import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.9, "0 s"),
        (-0.9, "0 s"),
        (1, "1 s"),
        (59.99, "59 s"),
        (60, "1 m"),
        (200, "3 m 20 s"),
        (3599, "59 m 59 s"),
        (3600, "1 h"),
        (3659, "1 h"),
        (3660, "1 h 1 m"),
        (86_400 + 59, "1 d"),
        (4 * 86_400 + 3 * 3600, "4 d 3 h"),
        (-200, "-3 m 20 s"),
        (1e15, "11574074074 d 1 h"),
    ],
)
def test_a_duration_has_its_two_largest_units_rounded_down(seconds: float, text: str) -> None:
    assert duration(seconds) == text
