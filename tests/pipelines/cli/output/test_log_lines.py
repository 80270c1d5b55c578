"""With `--log-format json`, stderr has one JSON object per line, with the run, the topic and the partition."""

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipelines.cli.main import LOG_FORMAT_VARIABLE, main
from pipelines.cli.output import log_lines
from pipelines.cli.output.log_lines import LogFormat
from tests.pipelines.cli.broker_world import Make

JSON = ("--log-format", "json")


def lines(text: str) -> list[dict[str, Any]]:
    """The objects of stderr."""
    return [json.loads(line) for line in text.splitlines()]


def invoke(folder: Path, *arguments: str, **environment: str) -> Result:
    file = folder / "penstock.toml"
    file.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    return CliRunner().invoke(main, ["--settings", str(file), *arguments], env=environment)


def test_a_load_tells_run_topic_and_partition(make: Make) -> None:
    world = make()
    result = world.penstock(*JSON, "load", "views")
    assert (result.exit_code, "views" in result.stdout) == (0, True)
    begins, partition, ends = lines(result.stderr)
    [newest, *_] = json.loads(world.penstock("history", "views", "--json").stdout)["results"]
    place = {"command": "load", "run": newest["run"], "cluster": "main", "topic": "views", "level": "info"}
    for line, message in ((begins, "load begins"), (partition, "partition loaded"), (ends, "load ends")):
        assert line == {**line, **place, "message": message}
    assert (partition["partition"], partition["start"], partition["end"], partition["rows"]) == ("0", 12, 20, 8)
    assert (ends["failed"], ends["rows"], ends["lag"], ends["version"]) == (False, 8, 0, newest["version"])
    assert world.penstock("load", "views").stderr == ""  # for people, the table says the same


def test_errors_and_warnings_have_their_place_as_fields(make: Make, tmp_path: Path) -> None:
    world = make()
    max((tmp_path / "lake" / "main" / "clicks" / "_delta_log").glob("*.json")).write_text("{")
    result = world.penstock(*JSON, "--debug", "status")
    error, trace = lines(result.stderr)
    assert error == {
        **error,
        "level": "error",
        "command": "status",
        "code": "PS-404",
        "kind": "LogTorn",
        "cluster": "main",
        "topic": "clicks",
        "retriable": False,
    }
    assert "clicks:" not in error["message"]
    assert trace["trace"].startswith("Traceback")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("load",), "give topics, or --all"),
        (("status", "--nonsense"), "No such option"),
        (("status", "--cluster", "old"), "there is no cluster 'old' in the settings"),
    ],
)
def test_wrong_use_is_an_object_too(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = invoke(tmp_path, *arguments, **{LOG_FORMAT_VARIABLE: "json"})
    [line] = lines(result.stderr)
    assert (result.exit_code, message in line["message"], line["command"]) == (2, True, arguments[0])


def fail(library: logging.Logger) -> None:
    """Log an error with its stack trace, and raise it again."""
    try:
        int("no number")
    except ValueError:
        library.exception("failed")
        raise


def test_lines_of_libraries_are_objects_until_the_command_ends(capsys: pytest.CaptureFixture[str]) -> None:
    library = logging.getLogger("kafka_io.zookeeper.session")
    with log_lines.configured(LogFormat.JSON, command="load"), log_lines.common_fields(run="r"):
        library.warning("lost %s", "a session")
        log_lines.warning("control \x1b[31m", topic="a\nb", partition=None)
        with suppress(ValueError):
            fail(library)
    first, second, third = lines(capsys.readouterr().err)
    assert (first["logger"], first["message"], first["run"]) == ("kafka_io.zookeeper.session", "lost a session", "r")
    assert (second["message"], second["topic"], "partition" in second) == ("control \x1b[31m", "a\nb", False)
    assert third["trace"].endswith("invalid literal for int() with base 10: 'no number'")
    assert not log_lines.is_json()
    log_lines.event("load begins")
    log_lines.warning("later", topic="a\nb")
    assert capsys.readouterr().err == "warning: a\\nb: later\n"
