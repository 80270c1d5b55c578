"""Quantities for people have units that fit their size, and one module writes them."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.quantities import as_text, count, counted, duration, run_time, size
from tests.syntax_trees import ROOT

_OWNER = ROOT / "resources" / "quantities.py"
_OWN_DURATION_OR_SIZE = re.compile(r"\{[^{}]*:[,.0-9]*f\} ?(s|min|minutes|h|hours|d|days|[kKMGT]i?B)\b")
_OWN_SEPARATORS = re.compile(r"\{[^{}]*:,[^{}]*\}")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.9, "0 s"),
        (-0.9, "0 s"),
        (1, "1 s"),
        (59.99, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (3659, "1 h"),
        (3660, "1 h 1 min"),
        (11_520, "3 h 12 min"),
        (86_400 + 59, "1 d"),
        (4 * 86_400 + 3 * 3600, "4 d 3 h"),
        (-200, "-3 min 20 s"),
        (1e12, "11,574,074 d 1 h"),
    ],
)
def test_a_duration_has_its_two_largest_units_rounded_down(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0.0 s"), (0.44, "0.4 s"), (59.94, "59.9 s"), (59.96, "59 s"), (61, "1 min 1 s")]
)
def test_a_run_time_below_a_minute_has_tenths(seconds: float, text: str) -> None:
    assert run_time(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_200_000_000, "1.2 GB"),
        (99_940, "99.9 kB"),
        (99_960, "100 kB"),
        (731_394, "731 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (-1500, "-1.5 kB"),
        (5e18, "5,000 PB"),
    ],
)
def test_a_size_has_the_largest_unit_of_which_it_has_one(size_bytes: float, text: str) -> None:
    assert size(size_bytes) == text


@given(st.integers(0, 10**18))
def test_a_size_has_three_digits_at_most_and_is_right_to_five_percent(size_bytes: int) -> None:
    number, unit = size(size_bytes).split()
    assert len(number.replace(".", "").replace(",", "")) <= 4  # 1000 PB has four
    factor = 1000 ** ("B", "kB", "MB", "GB", "TB", "PB").index(unit)
    assert abs(float(number.replace(",", "")) * factor - size_bytes) <= max(0.05 * size_bytes, 0)


def test_counts_have_separators_of_thousands() -> None:
    assert (count(1_234_567), count(12), count(1234.6), count(-1000)) == ("1,234,567", "12", "1,235", "-1,000")


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("bytes", 1500, "1.5 kB"),
        ("lag_bytes", 1500, "1.5 kB"),
        ("seconds", 0.25, "0.2 s"),
        ("late_s", 11_520.0, "3 h 12 min"),
        ("rows", 20_000, "20,000"),
        ("left_share", 0.25, "0.2"),
        ("rows_per_second", 1234.56, "1,234.6"),
    ],
)
def test_the_name_of_a_field_has_the_unit_of_its_numbers(name: str, number: float, text: str) -> None:
    assert as_text(name, number) == text


@pytest.mark.parametrize("room", ["pipelines", "resources"])
def test_no_other_module_writes_durations_or_sizes(room: str) -> None:
    texts = {path: path.read_text() for path in (ROOT / room).rglob("*.py") if path != _OWNER}
    assert [path.name for path, text in texts.items() if _OWN_DURATION_OR_SIZE.search(text)] == []
    assert _OWN_DURATION_OR_SIZE.search(_OWNER.read_text())


def test_no_command_writes_separators_of_thousands_by_itself() -> None:
    paths: list[Path] = list((ROOT / "pipelines" / "cli").rglob("*.py"))
    assert len(paths) > 20
    assert [path.name for path in paths if _OWN_SEPARATORS.search(path.read_text())] == []


def test_a_single_thing_has_no_plural() -> None:
    assert [counted(number, "message") for number in (0, 1, 1200)] == [
        "0 messages",
        "1 message",
        "1,200 messages",
    ]
