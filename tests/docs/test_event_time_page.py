"""The examples on the page about event time run against a table, and print what their comments say."""

import json
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner

from kafka_io.producer.message import Message
from kafka_io.producer.opening import open_producer
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from pipelines.defs.catalog.catalog import Catalog, topic_schedules
from pipelines.defs.catalog.known_topics import KnownTopics
from pipelines.defs.sensors.complete_hours import MAX_REPORTS, TopicWindows, complete_specs, event_of
from pipelines.ledger.event_time import MAX_LATE_HOURS, OLDER
from pipelines.ledger.ledger import CommitKind
from pipelines.status.complete_windows import WindowReport
from resources.penstock import PenstockResource
from resources.settings.settings import Settings
from resources.settings.time_windows import TimeWindows
from resources.settings.topic_audit import COUNT_COLUMNS
from tests.docs.pages import ROOT, run_blocks

PAGE = ROOT / "docs" / "event-time.md"
HOURS = ("complete", "complete_since", "time_zone")


def penstock(command: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, command.split())
    return result.exit_code, result.stdout


@pytest.fixture
def _clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The table of the topic `clicks`, with the settings of the page, in the working directory."""
    monkeypatch.chdir(tmp_path)
    settings, _, complete = run_blocks(PAGE, "toml")
    assert set(tomllib.loads(complete.text)["topics"]["clicks"]) == {"event_time", *HOURS}
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        Path("penstock.toml").write_text(settings.text.replace("localhost:9092", f"127.0.0.1:{broker.port}"))
        Path("clicks.jsonl").write_text('{"value": "a click"}\n')
        for command in ("publish clicks clicks.jsonl", "load clicks"):
            assert penstock(command)[0] == 0
        yield


@pytest.mark.usefixtures("_clicks")
def test_the_examples_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = [block for block in run_blocks(PAGE, "python") if block.reads_a_table]
    exec(compile(example.text, "event-time.md", "exec"), {})
    example.check_output(capsys.readouterr().out)
    [shell] = run_blocks(PAGE, "sh")
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
    settings, audit, _ = (block.text for block in run_blocks(PAGE, "toml"))
    [count] = [block.text.strip() for block in run_blocks(PAGE, "text")]
    [shown] = run_blocks(PAGE, "console")
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
    described = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    first = described.index("topic")
    assert described[first : first + len(COUNT_COLUMNS)] == [*COUNT_COLUMNS]


def test_the_asset_of_the_page_follows_the_hours_that_its_settings_define() -> None:
    _, _, complete = (block.text for block in run_blocks(PAGE, "toml"))
    settings = {"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:1"}}, **tomllib.loads(complete)}
    bound = Settings.model_validate(settings)
    catalog = Catalog(
        source=PenstockResource(inline=bound), settings=bound, known={"main": KnownTopics(names=("clicks",))}
    )
    [example] = [block for block in run_blocks(PAGE, "python") if "on_complete_partitions" in block.text]
    names: dict[str, Any] = {}
    exec(compile(example.text, "event-time.md", "exec"), names)
    hours, own = dg.AssetKey(["lake", "main", "clicks", "hours"]), dg.AssetKey("clicks_per_hour")
    defs = dg.Definitions(
        assets=[
            *(spec for own in topic_schedules(catalog) for spec in complete_specs(own)),
            names["clicks_per_hour"],
        ]
    )
    with dg.DagsterInstance.ephemeral() as instance:
        before = dg.evaluate_automation_conditions(defs, instance, evaluation_time=datetime(2026, 1, 2, tzinfo=UTC))
        instance.report_runless_asset_event(dg.AssetMaterialization(hours, partition="2026-01-01-07:00"))
        after = dg.evaluate_automation_conditions(
            defs, instance, evaluation_time=datetime(2026, 1, 2, tzinfo=UTC), cursor=before.cursor
        )
    assert after.get_requested_partitions(own) == {"2026-01-01-07:00"}


def test_the_page_names_the_metadata_and_the_bounds_of_a_tick() -> None:
    text = PAGE.read_text()
    assert f"at most {MAX_REPORTS} hours" in text
    report = WindowReport(start_ms=0, rows=1, late_rows=0, version=1, valid_through_ms=1)
    topic = TopicWindows(topic="a", table=dg.AssetKey("a"), windows=TimeWindows.of("hourly", "UTC"), first_ms=0)
    assert all(f"| `{name}` |" in text for name in event_of(topic, report).metadata)


def test_the_page_names_what_moves_a_valid_through_back_and_the_bounds_of_late_rows() -> None:
    text = PAGE.read_text()
    assert {kind for kind in ("rewind", "replay", "redecode") if f"a {kind}" in text} <= {*CommitKind}
    assert all(word in text for word in (f"{MAX_LATE_HOURS} hours", f"`{OLDER}`", "backfill", "created again"))
