"""`penstock init` tests what it writes down, and never overwrites a file."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_io.records.build import Record, record_batch
from pipelines.cli import init
from pipelines.cli.config_tests.new_settings import settings_text
from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from resources.settings.catalog import CatalogSettings
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.fakes.cluster import FakeCluster, Log


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a cluster with the topic `clicks`."""
    log = Log(entries=[(0, record_batch([Record(offset=0, timestamp=1, value=b"x")]))], end=1)
    with FakeCluster(logs={0: log}) as fake:
        yield fake.bootstrap[0].address


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty working directory of the command."""
    monkeypatch.delenv("PENSTOCK_SETTINGS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)


def penstock(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, words, input=stdin)


def created(*words: str) -> dict[str, Any]:
    """The result of `penstock init --json`."""
    [result] = json.loads(penstock("init", *words, "--json").stdout)["results"]
    assert isinstance(result, dict)
    return result


def test_the_settings_that_it_writes_are_those_of_the_options(address: str, home: Path) -> None:
    result = created("--bootstrap", address, "--lake", "lake", "--cluster", "shop")
    assert (result["written"], result["topics"], result["errors"]) == (True, ["clicks"], [])
    assert result["commands"] == ["penstock config check", "penstock load clicks", "penstock status"]
    settings = Settings.load(home / "penstock.toml")
    assert (settings.lake, settings.clusters["shop"].bootstrap) == (f"{home}/lake", address)
    assert list((home / "lake").iterdir()) == []


@pytest.mark.usefixtures("terminal")
def test_it_asks_for_what_the_options_do_not_say(address: str, home: Path) -> None:
    result = penstock("init", stdin=f"{address}\n\n\n")
    assert (result.exit_code, Settings.load().lake) == (0, f"{home}/lake")
    assert result.stdout.splitlines()[-7:] == [
        "topics: clicks",
        f"written: {home}/penstock.toml",
        "next:",
        "  penstock config check",
        "  penstock load clicks",
        "  penstock status",
        "the first load compiles its decoders, which takes seconds; `penstock warm` does so before",  # fault F04
    ]


@pytest.mark.usefixtures("terminal")
def test_without_brokers_it_asks_for_zookeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "_test", lambda _settings, _name: ([], []))
    assert penstock("init", stdin="\n127.0.0.1:1/kafka\nother\ndelta\n").exit_code == 0
    assert Settings.load().clusters["main"].zookeeper == "127.0.0.1:1/kafka"
    assert Settings.load().lake.endswith("/other")


@pytest.mark.usefixtures("terminal")
def test_it_asks_for_the_format_and_writes_what_iceberg_tables_need(address: str, home: Path) -> None:
    assert penstock("init", stdin=f"{address}\n\niceberg\n").exit_code == 0
    settings = Settings.load()
    assert (settings.table_format, settings.catalog) == ("iceberg", CatalogSettings(type="sqlite"))
    assert list((home / "lake").iterdir()) == [], "nothing is created before the first load"
    assert penstock("load", "clicks").exit_code == 0
    assert Lake.of(settings).open_catalog().list_tables("main") == [("main", "clicks")]


@pytest.mark.parametrize(("words", "option"), [((), "--bootstrap or --zookeeper"), (("--bootstrap", "b"), "--lake")])
def test_without_a_terminal_it_names_the_missing_option(words: tuple[str, ...], option: str) -> None:
    result = penstock("init", *words)
    assert (result.exit_code, f"give {option}: there is no terminal" in result.stderr) == (2, True)


@pytest.mark.parametrize("is_link", [False, True])
def test_it_overwrites_no_file(address: str, home: Path, is_link: bool) -> None:
    file = home / "penstock.toml"
    if is_link:
        file.symlink_to(home / "missing")
    else:
        file.write_text("mine")
    result = penstock("init", "--bootstrap", address, "--lake", "lake")
    assert (result.exit_code, "exists, and is not overwritten" in result.stderr) == (2, True)
    assert file.readlink() == home / "missing" if is_link else file.read_text() == "mine"


def test_it_overwrites_no_file_that_another_process_creates_meanwhile(
    address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def test(settings: Settings, name: str) -> tuple[list[Any], list[str]]:
        (home / "penstock.toml").write_text("mine")
        return [], []

    monkeypatch.setattr(init, "_test", test)
    assert penstock("init", "--bootstrap", address, "--lake", "lake").exit_code == 2
    assert (home / "penstock.toml").read_text() == "mine"


def test_if_a_test_fails_it_writes_nothing_and_names_the_repair(home: Path) -> None:
    words = ("init", "--bootstrap", "127.0.0.1:1", "--lake", "lake")
    result = penstock(*words)
    assert (result.exit_code, list(home.iterdir())) == (ExitCode.TRY_AGAIN, [])
    assert "failed cluster main: ConnectFailed: " in result.stdout
    assert "\n       Correct the address in the settings, start the server" in result.stdout
    assert "no settings file was written" in result.stderr
    [failed] = json.loads(penstock(*words, "--json").stdout)["results"]
    assert (failed["written"], failed["commands"], len(failed["errors"])) == (False, [], 1)


def test_wrong_answers_are_wrong_use() -> None:
    result = penstock("init", "--bootstrap", "b:9092", "--lake", "lake", "--sasl", "PLAIN", "--username", "me")
    assert (result.exit_code, "PLAIN takes `username` and `password`" in result.stderr) == (2, True)


def test_the_next_commands_name_another_file(address: str, home: Path) -> None:
    [record] = json.loads(
        penstock("--settings", "other file.toml", "init", "--bootstrap", address, "--lake", "lake", "--json").stdout
    )["results"]
    assert record["commands"][2] == f"penstock --settings '{home}/other file.toml' status"


def test_a_text_without_its_comments_has_the_same_settings() -> None:
    security = {"tls": True, "sasl": {"mechanism": "PLAIN", "username": '\u00fc"', "password": "env:P"}}
    text = settings_text("s3://b/l", "main", {"bootstrap": "b:1", "security": security})
    assert tomllib.loads(text) == {"lake": "s3://b/l", "clusters": {"main": {"bootstrap": "b:1", "security": security}}}


def test_each_comment_that_is_a_setting_is_one_that_can_be_switched_on() -> None:
    text = settings_text("lake", "main", {"bootstrap": "b:1"})
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    on = [line for line in lines if line.startswith("[") or "= " in line]
    settings = Settings.of(tomllib.loads("\n".join(on)), folder=Path("/"))
    assert (settings.caps.records_per_run, settings.topics.rules.allow) == (2_000_000, ("clicks", "views\\..*"))
    assert settings.clusters["main"].security.sasl is not None
