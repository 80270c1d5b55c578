"""`penstock status --watch` shows the newest status in place or as lines, survives outages, and ends with Ctrl-C."""

import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import ConnectFailed, Where
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from pipelines.cli.options import GlobalOptions
from pipelines.cli.output import console, log_lines, watch
from pipelines.cli.output.result import CommandResult
from pipelines.cli.output_schema import OUTPUT
from pipelines.ledger.failure import SliceFailure
from resources.explanations.explanation import ExitCode
from resources.kafka import open_cluster
from resources.settings.settings import Settings
from tests.pipelines.cli.broker_world import Make
from tests.pipelines.cli.terminals import command_on_terminal, on_terminal, read_until_end
from tests.pipelines.cli.walking import leads_on

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
ENTER, LEAVE, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
OPTIONS = GlobalOptions(settings_file=None, debug=False)
Between = Callable[[], None]


def rounds(monkeypatch: pytest.MonkeyPatch, *between: Between) -> list[float]:
    """Let a pause run the next of these functions, and the last pause be interrupted. The result has the pauses."""
    pauses: list[float] = []
    remaining = list(between)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if not remaining:
            raise KeyboardInterrupt
        remaining.pop(0)()

    monkeypatch.setattr(watch, "sleep", pause)
    return pauses


def nothing() -> None:
    """Change nothing between two rounds."""


def answering(*answers: str | Exception) -> watch.Ask:
    """Results that print a text each, or an error."""
    remaining = list(answers)

    def ask() -> CommandResult:
        answer = remaining.pop(0)
        if isinstance(answer, click.ClickException):
            raise answer
        if isinstance(answer, Exception):
            failures = [SliceFailure.of(answer, Where(cluster="main"))]
            return CommandResult(records=(), show=lambda _: console.print_sentence("0 topics"), errors=failures)
        return CommandResult(records=(), show=lambda _: console.print_sentence(answer))

    return ask


def watched(ask: watch.Ask, *, pause_s: float = 2) -> None:
    watch.watch(ask, title="penstock status", pause_s=pause_s, as_json=False)


def test_a_pipe_gets_a_block_for_each_round(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = rounds(monkeypatch, nothing)
    watched(answering("1 topic", ConnectFailed("no answer")), pause_s=2)
    printed = capsys.readouterr()
    first_time, first, gap, second_time, second, last = printed.out.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", first_time)
    assert (first, gap, second_time[:4], second, last) == ("1 topic", "", first_time[:4], "0 topics", "")
    assert "no answer" in printed.err
    assert pauses == [2, 2]


def test_a_terminal_is_drawn_in_place_and_keeps_the_last_result(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch, columns=80, lines=10)
    rounds(monkeypatch, nothing)
    watched(answering("5 topics", ConnectFailed("no answer")))
    shown = screen.getvalue()
    assert shown.startswith(ENTER)
    drawn, _, after = shown.partition(LEAVE)
    assert shown.count(ENTER) == shown.count(LEAVE) == 1
    assert SHOW_CURSOR in after
    texts = _SEQUENCE.sub("", drawn)
    positions = [
        texts.index(text) for text in ("waiting for", "penstock status, pauses of 2 s", "5 topics", "no answer")
    ]
    assert positions == sorted(positions)
    assert _SEQUENCE.sub("", after).splitlines()[0] == "0 topics"
    assert "no answer" in after
    assert "5 topics" not in after


def test_each_screen_names_the_command_that_explains_its_errors_and_a_pipe_names_it_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hint = leads_on("PS-201").strip()
    with click.Context(main, obj=OPTIONS):
        rounds(monkeypatch, nothing)
        watched(answering(ConnectFailed("no answer"), ConnectFailed("no answer")))
    assert capsys.readouterr().err.count(hint) == 1
    screen = on_terminal(monkeypatch)
    with click.Context(main, obj=OPTIONS):
        rounds(monkeypatch, nothing)
        watched(answering(ConnectFailed("no answer"), ConnectFailed("no answer")))
    drawn, _, after = screen.getvalue().partition(LEAVE)
    assert (drawn.count(hint), after.count(hint)) == (2, 1)


@pytest.mark.parametrize(
    ("results", "problems", "shown_results", "shown_problems"),
    [(20, 20, 2, 2), (1, 20, 1, 4), (20, 1, 3, 1), (3, 2, 3, 2)],
)
def test_problems_stay_visible_if_the_terminal_is_too_low(
    results: int, problems: int, shown_results: int, shown_problems: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = on_terminal(monkeypatch, columns=40, lines=6)
    rounds(monkeypatch)

    def show(_: Sequence[object]) -> None:
        for number in range(results):
            console.print_sentence(f"topic {number}")
        for number in range(problems):
            log_lines.error(f"problem {number}")

    watched(lambda: CommandResult(records=(), show=show))
    drawn = _SEQUENCE.sub(" ", screen.getvalue().partition(LEAVE)[0])
    assert re.findall(r"topic (\d+)", drawn) == [str(number) for number in range(shown_results)]
    assert re.findall(r"problem (\d+)", drawn) == [str(number) for number in range(shown_problems)]
    assert ("the terminal is too low for all lines" in drawn) is (results > shown_results)


def test_an_interruption_while_the_brokers_are_asked_restores_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = on_terminal(monkeypatch)

    def interrupted() -> CommandResult:
        raise KeyboardInterrupt

    watched(interrupted)
    assert screen.getvalue().endswith(f"{LEAVE}{SHOW_CURSOR}")


def test_wrong_use_ends_only_the_first_round(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deleted = click.UsageError("no such topic")
    with pytest.raises(click.UsageError):
        watched(answering(deleted))
    rounds(monkeypatch, nothing, nothing)
    watched(answering("first", deleted, "third"))
    printed = capsys.readouterr()
    assert "UsageError: no such topic" in printed.err
    assert "third" in printed.out


def test_a_pause_is_as_long_as_the_cpu_time_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = rounds(monkeypatch, nothing)
    now = iter([10.0, 10.5, 20.0, 27.0])
    monkeypatch.setattr(watch, "process_time", lambda: next(now))
    watched(answering("quick", "slow"), pause_s=2)
    assert pauses == [2, 7]


def test_sigterm_ends_it_as_ctrl_c_does_and_gets_its_handler_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    rounds(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGTERM), nothing)
    watched(answering("first", "second"))
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_during_an_import_ends_it_after_the_round(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An exception in an import can become an ImportError. The module then stays half imported, and rounds fail."""
    (tmp_path / "interrupted.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nTEXT = 'imported'\n")
    monkeypatch.syspath_prepend(tmp_path)
    pauses = rounds(monkeypatch)

    def ask() -> CommandResult:
        text = importlib.import_module("interrupted").TEXT
        return CommandResult(records=(), show=lambda _: console.print_sentence(text))

    watched(ask)
    assert capsys.readouterr().out.splitlines()[1] == "imported"
    assert pauses == []


def test_a_signal_during_the_end_of_an_object_ends_it_after_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python only prints an exception in `__del__`."""

    class Ending:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    pauses = rounds(monkeypatch)
    endings = [Ending()]

    def ask() -> CommandResult:
        endings.clear()
        return CommandResult(records=(), show=lambda _: None)

    watched(ask)
    assert pauses == []


def test_an_ignored_signal_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell lets the commands that it starts in the background ignore Ctrl-C."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pauses = rounds(monkeypatch, lambda: signal.raise_signal(signal.SIGINT), nothing)
        watched(answering("first", "second", "third"))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(pauses) == 3


def test_a_broker_may_end_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round is one line of JSON of the documented shape. A cluster stays open until it fails."""
    opened: list[str] = []

    def open_counted(settings: Settings, name: str) -> Cluster:
        opened.append(name)
        return open_cluster(settings, name)

    monkeypatch.setattr("resources.kafka.open_cluster", open_counted)
    broker = ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker"))
    broker.start()
    settings = tmp_path / "penstock.toml"
    settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n')
    again = ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", port=broker.port))
    rounds(monkeypatch, nothing, broker.stop, again.start)
    try:
        result = CliRunner().invoke(main, ["--settings", str(settings), "status", "--watch", "--json"])
    finally:
        again.stop()
    assert result.exit_code == 0, result.output
    documents = result.stdout.splitlines()
    for document in documents:
        OUTPUT.validate_json(document, strict=True, extra="forbid")
    assert [json.loads(document)["exit_code"] for document in documents] == [0, 0, ExitCode.TRY_AGAIN, 0]
    assert [error["cluster"] for error in json.loads(documents[2])["errors"]] == ["main"]
    assert opened == ["main", "main"]


@pytest.mark.parametrize(
    ("words", "pause_s", "topics"),
    [
        (("--watch",), 2, ["clicks", "views"]),
        (("--watch", "clicks"), 2, ["clicks"]),
        (("--watch", "7", "clicks"), 7, ["clicks"]),
        (("clicks", "--watch=7"), 7, ["clicks"]),
        (("--watch", "--json"), 2, ["clicks", "views"]),
    ],
)
def test_the_seconds_are_optional(
    words: tuple[str, ...], pause_s: float, topics: list[str], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "process_time", lambda: 0.0)
    pauses = rounds(monkeypatch)
    result = make().penstock("status", *words)
    assert (result.exit_code, pauses) == (0, [pause_s])
    assert [topic for topic in ("clicks", "views") if topic in result.stdout] == topics


@pytest.mark.parametrize("words", [("--watch", "0"), ("--watch", "nan"), ("--watch=soon",), ("--watch", "-q")])
def test_a_pause_of_no_time_and_a_quiet_watch_are_wrong_use(words: tuple[str, ...], tmp_path: Path) -> None:
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    assert CliRunner().invoke(main, ["--settings", str(settings), "status", *words]).exit_code == 2


@pytest.mark.slow
def test_ctrl_c_while_python_executes_a_text_is_exit_code_0(tmp_path: Path) -> None:
    """`dataclass`, for example, executes a text. Only a module that `python -m` runs ends in another way then."""
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    (tmp_path / "watching.py").write_text(
        "from pipelines.__main__ import run\n"
        "from pipelines.cli.output import watch\n"
        "watch.sleep = lambda _: exec('raise KeyboardInterrupt')\n"
        "run()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "watching", "--settings", str(settings), "status", "--watch"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False)
    assert "0 topics" in ended.stdout


@pytest.mark.slow
def test_ctrl_c_on_a_real_terminal_is_exit_code_0_and_restores_it(make: Make) -> None:
    command = [sys.executable, "-m", "pipelines", "--settings", str(make().settings_file), "status", "--watch", "60"]
    with command_on_terminal(command, columns=60) as (process, user_side):
        shown = b""
        while b"2 topics" not in shown:
            assert select.select([user_side], [], [], 60)[0]
            shown += os.read(user_side, 65536)
        process.send_signal(signal.SIGINT)
        rest_of_output = read_until_end(user_side)
        assert process.wait(60) == 0
    assert shown.startswith(ENTER.encode())
    # If the signal arrives while rich writes a screen, rich writes it once more before it leaves.
    _, leave, last_result = rest_of_output.partition(LEAVE)
    assert leave
    assert ENTER not in last_result
    lines = [_SEQUENCE.sub("", line) for line in last_result.splitlines()]
    assert "2 topics, 1 behind, 1 loaded, lag 8 records" in lines
    assert max(map(len, lines)) <= 60
