"""The examples on the page about event time run against a table, and print what their comments say."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_io.producer.message import Message
from kafka_io.producer.opening import open_producer
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from pipelines.loading.event_time import MAX_LATE_HOURS, OLDER
from pipelines.loading.ledger import CommitKind
from resources.topic_audit import COUNT_COLUMNS
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "event-time.md"


def penstock(command: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, command.split())
    return result.exit_code, result.stdout


@pytest.fixture
def _clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The table of the topic `clicks`, with the settings of the page, in the working directory."""
    monkeypatch.chdir(tmp_path)
    settings, _ = (block for block in blocks(PAGE) if block.language == "toml")
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        Path("penstock.toml").write_text(settings.text.replace("localhost:9092", f"127.0.0.1:{broker.port}"))
        Path("clicks.jsonl").write_text('{"value": "a click"}\n')
        for command in ("publish clicks clicks.jsonl", "load clicks"):
            assert penstock(command)[0] == 0
        yield


@pytest.mark.usefixtures("_clicks")
def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = [block for block in blocks(PAGE) if block.reads_a_table]
    exec(compile(example.text, "event-time.md", "exec"), {})
    example.check_output(capsys.readouterr().out)
    [shell] = [block for block in blocks(PAGE) if block.language == "sh"]
    codes = [penstock(command.removeprefix("penstock "))[0] for command in shell.commands()]
    assert codes == [0, 0, 0]
    code, output = penstock("complete clicks --through -1m --json")
    [result] = json.loads(output)["results"]
    assert (code, result["complete"]) == (1, False)
    assert all(partition["at_end"] for partition in result["partitions"])


def test_the_comparison_with_a_count_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings, audit = (block.text for block in blocks(PAGE) if block.language == "toml")
    [count] = [block.text.strip() for block in blocks(PAGE) if block.language == "text"]
    [shown] = [block for block in blocks(PAGE) if block.language == "console"]
    assert json.loads(count).keys() == COUNT_COLUMNS.keys()
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        text = settings.partition("[topics.clicks]")[0].replace("localhost:9092", bootstrap) + audit
        Path("penstock.toml").write_text(text)
        with open_producer(bootstrap=bootstrap) as producer:
            time_ms = json.loads(count)["window_start_ms"] + 1
            producer.send_many([Message(topic="clicks", value=b"x", timestamp_ms=time_ms)] * 3)
            producer.send("clicks-counts", count.encode())
        assert [penstock(f"load {topic}")[0] for topic in ("clicks", "clicks-counts")] == [0, 0]
    [command] = shown.commands()
    code, output = penstock(command.removeprefix("penstock "))
    valid_through = r"valid through .*"
    expected = re.sub(valid_through, "", shown.text.partition("\n")[2])
    assert (code, re.sub(valid_through, "", output)) == (1, expected)


def test_the_page_describes_each_field_of_a_count() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE) == [*COUNT_COLUMNS]


def test_the_page_names_what_moves_a_valid_through_back_and_the_bounds_of_late_rows() -> None:
    text = PAGE.read_text()
    assert {kind for kind in ("rewind", "replay", "redecode") if f"a {kind}" in text} <= {*CommitKind}
    assert all(word in text for word in (f"{MAX_LATE_HOURS} hours", f"`{OLDER}`", "backfill", "created again"))
