"""The examples on the page about state tables run, on what its settings load."""

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from resources.settings.settings import Settings
from tests.docs.pages import ROOT, run_blocks

PAGE = ROOT / "docs" / "state-tables.md"
CUSTOMERS = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}, {"id": 2, "name": "Bob B."}]


def penstock(command: str) -> str:
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, result.output
    return result.output


def test_the_examples_of_the_page_give_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, *_ = (block.text for block in run_blocks(PAGE, "toml"))
    [query] = run_blocks(PAGE, "python")
    monkeypatch.chdir(tmp_path)
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        Path("penstock.toml").write_text(
            f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n{settings}'
        )
        Path("customers.jsonl").write_text("".join(f"{json.dumps(customer)}\n" for customer in CUSTOMERS))
        penstock("publish customers customers.jsonl")
        penstock("load customers")
        for block in run_blocks(PAGE, "sh", "console"):
            for command in block.commands():
                penstock(command.removeprefix("penstock "))
    exec(compile(query.text, "state-tables.md", "exec"), {})
    query.check_output(capsys.readouterr().out)
    assert "the state table has the newest row of 2 keys" in penstock("verify customers")


def test_the_settings_of_the_page_are_valid() -> None:
    for block in run_blocks(PAGE, "toml"):
        data = {"lake": "lake", "clusters": {"main": {"bootstrap": "b:1"}}, **tomllib.loads(block.text)}
        assert Settings.of(data, folder=Path("/")).topics.sections
