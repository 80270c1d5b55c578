"""Progress bars are on terminals only, and only while a load runs. They say how fast it is, and what is left."""

import re
from unittest.mock import patch

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress

from pipelines.cli.output import terminal
from pipelines.cli.output.progress import _Amounts, progress
from tests.pipelines.cli.terminals import on_terminal


def test_bars_are_printed_on_terminals_only(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with progress() as begin:
        begin("clicks")(1, 2)
    assert capfd.readouterr() == ("", "")
    screen = on_terminal(monkeypatch)
    with progress() as begin:
        begin("clicks")(1, 2)
    assert "clicks" in screen.getvalue()


def test_colours_in_a_pipe_bring_no_bars(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "err", Console(stderr=True, force_terminal=True))  # as with FORCE_COLOR
    with progress() as begin:
        begin("clicks")(1, 2)
    assert capfd.readouterr() == ("", "")


def test_quiet_has_no_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch)
    with terminal.quieted(quiet=True), progress() as begin:
        begin("clicks")(1, 2)
    assert "clicks" not in screen.getvalue()


def test_a_topic_has_a_bar_only_while_it_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over thousands of topics would fill the terminal."""
    on_terminal(monkeypatch)
    shown: list[list[str]] = []
    with progress() as begin, patch.object(Progress, "update", autospec=True) as update:
        for number in range(20):
            begin(f"topic-{number}")(1, 2)
            bars = update.call_args.args[0]
            begin(f"topic-{number}")(2, 2)
            begin(f"without news-{number}")
            begin(f"without news-{number}")(1, 1)
            shown.append([task.description for task in bars.tasks])
        begin("clicks")(1, 2)
        assert [task.description for task in bars.tasks] == ["clicks"]
    assert shown == [[]] * 20


def test_a_bar_says_how_much_is_done_how_fast_and_what_is_left() -> None:
    now = [0.0]
    bars = Progress(get_time=lambda: now[0], auto_refresh=False)
    bars.add_task("clicks", total=None)
    [task] = bars.tasks
    assert _Amounts().render(task).plain == ""
    bars.update(task.id, total=40_000)
    assert _Amounts().render(task).plain == "0 of 40,000"
    for _ in range(2):
        now[0] += 2
        bars.update(task.id, advance=6000)
    assert _Amounts().render(task).plain == "12,000 of 40,000, 3,000/s, 10 s left"


def test_a_bar_with_a_long_name_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch, columns=80)
    with progress() as begin:
        begin("com.example.analytics.clickstream.enriched.sessions.v2.production")(1_000_000, 2_000_000_000)
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).replace("\r", "\n").splitlines()
    [name, *_] = [line for line in lines if "\u2026" in line]
    assert name.startswith("com.example.")
    assert "1,000,000 of 2,000,000,000" in " ".join(lines)
    assert max(map(cell_len, lines)) <= 80
