"""The output for people: durations have two units at most, and uploads that were never completed are named."""

from dataclasses import asdict

import pytest

from pipelines.cli.console import cleanings, duration
from pipelines.maintenance.clean import CleanResult


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


def cleaned(topic: str, *, uploads: int = 0, unknown: str = "") -> dict[str, object]:
    """A result of `penstock clean`."""
    result = CleanResult(table=f"s3://lake/main/{topic}", uploads=uploads, uploads_unknown=unknown)
    return {**asdict(result), "topic": topic, "state": None}


@pytest.mark.parametrize(("deleted", "verb"), [(True, "were aborted"), (False, "would be aborted")])
def test_uploads_that_were_never_completed_are_named(
    deleted: bool, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fault L23
    cleanings([cleaned("clicks", uploads=3), cleaned("views")], deleted=deleted)
    lines = capsys.readouterr().out.splitlines()
    assert f"clicks: 3 uploads of files that were never completed {verb}" in lines
    assert not any("views: " in line for line in lines)
    assert ("nothing was changed; give --delete to delete these files" in lines) is not deleted


def test_the_reason_why_uploads_were_not_looked_for_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    cleanings([cleaned("clicks", unknown="it rains"), cleaned("views", unknown="it rains")], deleted=True)
    output = capsys.readouterr().out
    assert output.count("uploads that were never completed were not looked for: it rains") == 1
