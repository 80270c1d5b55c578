"""`penstock state` brings state tables up to date, and `penstock verify` compares them with the tables of topics."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from pipelines.cli.main import main
from pipelines.state_tables.state_table import state_output
from resources.explanations.explanation import ExitCode
from tests.pipelines.increments.keyed_tables import KeyedHistory

pytestmark = pytest.mark.slow  # each test fills a table and changes it

SETTINGS = 'lake = "{lake}"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n'
STATE = '[topics.clicks.state]\nkey = "key"\n'
Run = Callable[..., Result]


@pytest.fixture
def history(tmp_path: Path) -> KeyedHistory:
    history = KeyedHistory(tmp_path / "lake", Random(1))
    history.load(("a", "1"), ("b", "1"), ("a", "2"))
    return history


@pytest.fixture
def run(history: KeyedHistory, tmp_path: Path) -> Run:
    settings = tmp_path / "penstock.toml"
    settings.write_text(SETTINGS.format(lake=history.lake.root) + STATE)
    return lambda *words: CliRunner().invoke(main, ["--settings", str(settings), *words])


def test_the_state_table_is_brought_up_to_date(run: Run, history: KeyedHistory) -> None:
    [first] = json.loads(run("state", "clicks", "--json").stdout)["results"]
    assert (first["since"], first["version"], first["changed"], first["rebuilt"]) == (-1, 1, 2, True)
    history.load(("b", None))
    [second] = json.loads(run("state", "--all", "--json").stdout)["results"]
    assert (second["since"], second["version"], second["changed"], second["rebuilt"]) == (1, 2, 1, False)
    assert history.state() == history.expected()
    [third] = json.loads(run("state", "clicks", "--rebuild", "--json").stdout)["results"]
    assert third["rebuilt"]
    header, line = run("state", "clicks").stdout.splitlines()[:2]
    assert header.split()[:3] == ["TOPIC", "SINCE", "VERSION"]
    assert line.split()[:4] == ["clicks", "2", "2", "0"]


def test_a_topic_without_a_state_table_is_wrong_use(run: Run, tmp_path: Path, history: KeyedHistory) -> None:
    (tmp_path / "penstock.toml").write_text(SETTINGS.format(lake=history.lake.root))
    result = run("state", "clicks", "--json")
    assert result.exit_code == 2
    assert "no section [topics.clicks.state]" in json.loads(result.stdout)["errors"][0]["message"]
    assert json.loads(run("state", "--all", "--json").stdout)["results"] == []


def test_verify_proves_the_state_table_too(run: Run, history: KeyedHistory) -> None:
    run("state", "clicks")
    [proven] = json.loads(run("verify", "clicks", "--json").stdout)["results"]
    assert proven["proven"]
    assert proven["state"] == {"version": 1, "keys": 2, "missing": 0, "extra": 0, "wrong": 0}
    DeltaTable(state_output(history.table).uri).delete("offset = 10")
    result = run("verify", "clicks", "--json")
    [wrong] = json.loads(result.stdout)["results"]
    assert (result.exit_code, wrong["proven"], wrong["state"]["missing"]) == (ExitCode.NOT_PROVEN, False, 1)


# fault F17
def test_verify_before_the_first_update_proves_the_table_and_says_what_is_missing(
    run: Run, history: KeyedHistory
) -> None:
    result = run("verify", "clicks", "--json")
    [proven] = json.loads(result.stdout)["results"]
    assert (result.exit_code, proven["proven"], proven["problems"], "state" in proven) == (0, True, [], False)
    result = run("verify", "clicks")
    assert "clicks: 3 rows, each exactly once" in result.stdout
    assert "there is no state table yet: run `penstock state clicks`" in " ".join(result.stderr.split())


def test_an_error_of_the_comparison_is_an_error_of_the_table(run: Run, tmp_path: Path, history: KeyedHistory) -> None:
    run("state", "clicks")
    Path(history.uri).rename(tmp_path / "away")
    again = KeyedHistory(tmp_path / "lake", Random(2))
    again.load(("a", "1"))
    result = run("verify", "clicks", "--json")
    assert result.exit_code == ExitCode.CHOICE_NEEDED
    assert json.loads(result.stdout)["errors"][0]["kind"] == "SourceChanged"
    assert run("state", "clicks", "--json").exit_code == ExitCode.CHOICE_NEEDED
    assert run("state", "clicks", "--rebuild", "--json").exit_code == 0


def test_clean_cleans_the_state_table_too(run: Run, history: KeyedHistory) -> None:
    assert run("state", "clicks").exit_code == 0
    killed = Path(state_output(history.table).uri) / "state-killed.parquet"
    killed.write_bytes(b"rows")
    os.utime(killed, (0, 0))
    lines = run("clean", "clicks").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["clicks", "0", "0"], ["clicks", "(state)", "1"]]
    assert lines[3] == "nothing was changed; give --delete to delete these files"
    [cleaned] = json.loads(run("clean", "--all", "--delete", "--json").stdout)["results"]
    assert (cleaned["collected"], cleaned["state"]["collected"]) == ([], ["state-killed.parquet"])
    assert not killed.exists()
    assert run("verify", "clicks").exit_code == 0
