"""The examples that query typed tables run, on what the settings of their pages load."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.cli.main import main
from resources.settings.settings import Settings
from tests.docs.pages import ROOT, Block, run_blocks
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, log_of

PAGE = ROOT / "docs" / "typed-tables.md"


def example(language: str) -> str:
    """The first block of the page in this language."""
    return run_blocks(PAGE, language)[0].text


def test_the_query_of_the_page_reads_what_the_settings_load(tmp_path: Path) -> None:
    formats = tomllib.loads(example("toml"))["topics"]
    fake = FakeCluster(logs={0: log_of([b"a", None, b"b"])})
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=formats["orders"])
        assert topic.load().error is None
    script = example("python").replace("orders", "clicks")
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    lines = [line.replace("\u2502", " ").split() for line in ran.stdout.splitlines()]
    assert ["a", "0"] in lines, ran.stdout + ran.stderr
    assert ["b", "2"] in lines


def test_the_query_for_debezium_gives_the_present_rows(tmp_path: Path) -> None:
    change = '{{"op": "{}", "before": {}, "after": {}, "ts_ms": 1}}'
    before, after, other = '{"id": 1, "note": "a"}', '{"id": 1, "note": "b"}', '{"id": 2, "note": "c"}'
    events = [change.format("c", "null", before), change.format("u", before, after), change.format("c", "null", other)]
    values = [event.encode() for event in (*events, change.format("d", other, "null"))]
    with FakeCluster(logs={0: log_of([*values, None])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "debezium"})
        assert topic.load().error is None
    orders = DeltaTable(topic.table.uri).to_pyarrow_dataset()
    assert orders is not None
    with duckdb.connect() as database:
        database.register("orders", orders)
        assert database.sql(example("sql")).select("id", "note").fetchall() == [(1, "b")]


@pytest.mark.parametrize("block", [block.text for block in run_blocks(PAGE, "toml")])
def test_the_settings_of_the_page_are_valid(block: str) -> None:
    minimal = {"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:9092"}}}
    registries = {"registries": {"main": {"url": "http://127.0.0.1:8081"}}}
    assert Settings.model_validate({**minimal, **registries, **tomllib.loads(block)}).registries


def test_every_regular_expression_of_the_page_matches_whole_names() -> None:
    settings = Settings.model_validate(
        {"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:9092"}}, **tomllib.loads(example("toml"))}
    )
    assert settings.format_of("logs.web").max_bad_share == 0.001
    assert settings.format_of("logs").format == "raw"


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "customer", "type": "string"}, {"name": "amount", "type": "double"}],
}
ORDERS = [{"customer": "Ada", "amount": 30.0}, {"customer": "Bob", "amount": 7.0}, {"customer": "Ada", "amount": 7.5}]


def test_the_front_page_queries_what_its_settings_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    front: dict[str, Block] = {}
    for block in run_blocks(ROOT / "README.md", "toml", "python"):
        front.setdefault(block.language, block)
    monkeypatch.chdir(tmp_path)
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")
    with ModernBrokerServer(config) as broker, EmbeddedSchemaRegistry() as registry:
        registry.register("orders-value", json.dumps(ORDER))
        settings = front["toml"].text.replace("localhost:9092", f"127.0.0.1:{broker.port}")
        Path("penstock.toml").write_text(settings.replace("http://localhost:8081", registry.url))
        Path("orders.jsonl").write_text("".join(f"{json.dumps(order)}\n" for order in ORDERS))
        for command in ("penstock publish orders orders.jsonl --registry main", "penstock load orders"):
            result = CliRunner().invoke(main, command.split()[1:])
            assert result.exit_code == 0, result.output
    assert front["python"].reads_a_table
    exec(compile(front["python"].text, "README.md", "exec"), {})
    front["python"].check_output(capsys.readouterr().out)
