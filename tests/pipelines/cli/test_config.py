"""`penstock config` explains the settings and shows no secret."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from resources.settings.settings import Settings
from tests.fakes.cluster import FakeCluster, Log

CANARY = "canary-4711"
Check = Callable[..., tuple[Result, dict[str, Any]]]


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with FakeCluster(
        logs={0: Log(entries=[(0, record_batch([Record(offset=0, timestamp=1, value=b"x")]))], end=1)}
    ) as cluster:
        yield cluster


@pytest.fixture
def file(fake: FakeCluster, tmp_path: Path) -> Path:
    """Settings of a cluster that answers."""
    address = ",".join(broker.address for broker in fake.bootstrap)
    file = tmp_path / "penstock.toml"
    file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{address}"\n')
    return file


def penstock(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--settings", str(file), "config", *arguments])


def check(file: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the results by subject."""
    result = penstock(file, "check", "--json", *arguments)
    return result.exit_code, {result["check"]: result for result in json.loads(result.stdout)["results"]}


def test_a_check_says_what_the_settings_mean(file: Path) -> None:
    file.write_text(file.read_text() + '[schedules.fast]\ntopics = "cl.*"\ncron = "* * * * *"\n')
    code, results = check(file)
    assert [result["check"] for result in results.values() if not result["ok"]] == []
    assert code == 0
    assert results["settings"]["message"] == str(file)
    assert results["schedule main/fast"]["message"] == "loaded at * * * * *"
    assert results["lake"]["message"] == f"{file.parent}/lake, tables: 0, a new lake: no load has used it"
    assert results["cluster main"]["message"].startswith("modern, brokers: 2")
    assert ", topics allowed: 1 of 1, topics have no ids, " in results["cluster main"]["message"]
    assert results["cluster main"]["message"].endswith(", plain text")
    assert results["topics main/fast"]["message"] == "topics: 1"
    assert results["topics main/topics"]["message"] == "topics: 0"


def test_an_old_name_in_the_settings_gives_one_warning(file: Path) -> None:
    file.write_text(file.read_text() + '[groups.fast]\ntopics = "cl.*"\n')
    result = penstock(file, "show")
    assert (result.exit_code, 'schedules.fast.topics = ["cl.*"]' in result.stdout) == (0, True)
    [warning] = result.stderr.splitlines()
    assert warning.endswith("groups is the old name of schedules: rename it in the settings")


def test_a_check_reads_the_files_with_the_columns_of_topics(file: Path) -> None:
    text = '[topics.{0}]\nformat = "json"\njson_schema = "{1}/{0}.json"\n'
    file.write_text(file.read_text() + text.format("orders", file.parent) + text.format("lost", file.parent))
    (file.parent / "orders.json").write_text('{"properties": {"id": {"type": "integer"}}}')
    code, results = check(file)
    assert (code, results["columns of topics.orders"]["message"]) == (1, f"{file.parent}/orders.json, columns: 1")
    assert results["columns of topics.lost"]["message"].endswith("lost.json: no such file or directory (PS-710)")


def test_a_check_reads_the_files_with_message_types(file: Path) -> None:
    file.write_text(file.read_text() + '[topics.orders]\nformat = "protobuf"\nproto_file = "orders.proto"\n')
    (file.parent / "orders.proto").write_text('syntax = "proto3"; message Order { int64 id = 1; }')
    code, results = check(file)
    assert (code, results["columns of topics.orders"]["message"]) == (0, f"{file.parent}/orders.proto, columns: 1")
    (file.parent / "orders.proto").write_text('syntax = "proto3"; message Order { int64 = 1; }')
    code, results = check(file)
    assert (code, results["columns of topics.orders"]["message"]) == (
        1,
        f"InvalidSchema: {file.parent}/orders.proto: the .proto text has an unexpected = in line 1 (PS-503)",
    )


# fault F14
def test_a_check_reads_the_files_with_avro_schemas(file: Path) -> None:
    file.write_text(file.read_text() + '[topics.orders]\nformat = "avro"\navro_file = "orders.avsc"\n')
    (file.parent / "orders.avsc").write_text('"long"')
    code, results = check(file)
    assert (code, results["columns of topics.orders"]["message"]) == (0, f"{file.parent}/orders.avsc, columns: 1")
    (file.parent / "orders.avsc").write_text('"lang"')
    code, results = check(file)
    message = results["columns of topics.orders"]["message"]
    assert (
        code,
        message.startswith(f"InvalidSchema: {file.parent}/orders.avsc: the Avro schema uses the type lang"),
    ) == (
        1,
        True,
    )


def test_people_get_a_line_for_each_check(file: Path) -> None:
    lines = penstock(file, "check", "--offline").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 4
    assert lines[0] == f"ok     settings: {file}"


def test_a_failed_check_does_not_hide_the_others(file: Path, fake: FakeCluster) -> None:
    file.write_text(
        file.read_text()
        + '[clusters.away]\nbootstrap = "127.0.0.1:1"\n'
        + '[clusters.safe]\nbootstrap = "127.0.0.1:1"\n'
        + '[clusters.safe.security]\ntls = { ca = "none.pem" }\n'
        + 'sasl = { mechanism = "SCRAM-SHA-256", username = "me", password = "env:PENSTOCK_TEST_NO_SUCH" }\n'
    )
    code, results = check(file)
    assert code == 1
    failed = {subject: result["message"].partition(":")[0] for subject, result in results.items() if not result["ok"]}
    assert failed == {
        "secret env:PENSTOCK_TEST_NO_SUCH": "SecretMissing",
        f"file {file.parent}/none.pem": "FileNotFoundError",
        "cluster away": "ConnectFailed",
        "cluster safe": "TlsFailed",
    }
    assert results["cluster main"]["ok"]


def test_each_registry_is_tried(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TEST_SECRET", CANARY)
    login = 'token = "env:PENSTOCK_TEST_SECRET"\nallow_secret_over_plaintext = true\n'
    with EmbeddedSchemaRegistry(authorization=f"Bearer {CANARY}") as embedded:
        embedded.register("clicks-value", '"string"')
        file.write_text(
            file.read_text()
            + f'[registries.main]\nurl = "{embedded.url}"\n{login}'
            + f'[registries.refused]\nurl = "{embedded.url}"\n'
            + '[registries.away]\nurl = "https://127.0.0.1:1"\ntls = { ca = "none.pem" }\n'
        )
        code, results = check(file)
    assert (code, results["registry main"]["ok"], results["secret env:PENSTOCK_TEST_SECRET"]["ok"]) == (1, True, True)
    assert results["registry main"]["message"] == f"{embedded.url}, subjects: 1, bearer token"
    assert not results[f"file {file.parent}/none.pem"]["ok"]
    assert results["registry away"]["message"].startswith("TlsFailed: ")
    (error,) = results["registry refused"]["errors"]
    assert (error["kind"], error["registry"], error["retriable"]) == ("AuthenticationFailed", "refused", False)


@pytest.mark.parametrize(
    ("text", "subject", "message"),
    [
        ('cron = "soon"\n', "settings", "cron: write a cron expression"),
        ("lak = 1\n", "settings", "lak is not a setting; did you mean 'lake'?"),
    ],
)
def test_wrong_settings_fail_the_offline_check(text: str, subject: str, message: str, file: Path) -> None:
    file.write_text(text + file.read_text())
    code, results = check(file, "--offline")
    assert (code, results[subject]["ok"]) == (ExitCode.WRONG_USE, False)
    assert message in results[subject]["message"]


def test_definitions_that_dagster_refuses_fail_the_offline_check(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise dg.DagsterInvalidDefinitionError("no such owner")

    monkeypatch.setattr(dg.Definitions, "validate_loadable", refuse)
    code, results = check(file, "--offline")
    assert (code, results["dagster"]["ok"]) == (ExitCode.WRONG_USE, False)
    assert "no such owner" in results["dagster"]["message"]


def test_a_check_names_the_clusters_of_a_lake_that_are_not_in_the_settings(file: Path) -> None:  # fault N17
    (file.parent / "lake" / "former").mkdir(parents=True)
    _, results = check(file)
    assert results["lake"]["message"].endswith("/lake, tables: 0, clusters that the settings do not have: former")


def test_a_lake_whose_store_replaces_objects_fails_its_check(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault P13
    (file.parent / "lake").mkdir()
    monkeypatch.setattr(os, "link", lambda _source, _target: None)
    code, results = check(file)
    assert (code, results["lake"]["ok"]) == (1, False)
    assert results["lake"]["message"].startswith("StoreUnsafe: the store of")


def test_a_lake_that_cannot_be_written_fails_its_check(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_access = os.access  # whoever runs this may be root
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != file.parent and real_access(path, mode))
    code, results = check(file)
    assert (code, results["lake"]["ok"]) == (ExitCode.REFUSED, False)
    assert results["lake"]["message"] == f"LakeRefused: this user cannot write to {file.parent} (PS-402)"


def test_no_config_command_shows_a_secret(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fault X01
    monkeypatch.setenv("PENSTOCK_TEST_SECRET", CANARY)
    file.write_text(
        file.read_text()
        + "[clusters.main.security]\n"
        + 'sasl = { mechanism = "SCRAM-SHA-256", username = "me", password = "env:PENSTOCK_TEST_SECRET" }\n'
        + f'[lake_options]\naws_secret_access_key = "{CANARY}"\nregion = "eu"\n'
        + f'[spark]\nremote = "sc://host:1;token={CANARY};user_id=me"\n"spark.ssl.keyPassword" = "{CANARY}"\n'
    )
    outputs = [
        penstock(file, *arguments).output
        for arguments in (("check",), ("check", "--json"), ("show",), ("show", "--json"))
    ]
    assert all(outputs)
    assert CANARY not in "".join(outputs)
    assert 'clusters.main.security.sasl.password = "env:PENSTOCK_TEST_SECRET"' in outputs[2]
    assert 'lake_options.region = "eu"' in outputs[2]
    assert 'spark.remote = "sc://host:1;token=***;user_id=me"' in outputs[2]


def test_the_shown_settings_are_a_file_with_the_same_settings(file: Path) -> None:
    file.write_text(
        file.read_text() + '[topics]\nallow = ["a\\\\.b", "\u00fc\\""]\n[spark]\nspark.driver.memory = "2g"\n'
    )
    shown_file = file.with_name("shown.toml")
    shown_file.write_text(penstock(file, "show").stdout)
    assert Settings.load(shown_file) == Settings.load(file)


def test_the_reference_is_printed_without_settings(tmp_path: Path) -> None:
    result = penstock(tmp_path / "none.toml", "reference")
    assert result.exit_code == 0
    assert "| `keep_days` | number above 0 up to 36_500 | `7.0` |" in result.stdout
