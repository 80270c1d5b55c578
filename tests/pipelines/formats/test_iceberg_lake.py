"""A lake of Iceberg tables, with the commands that people type and with other readers."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.catalogs.rest_catalog import SECRET, rest_catalog
from tests.fakes.object_store import BUCKET, object_store
from tests.kafka_io.testing.modern.talk import Client

Penstock = Callable[..., Result]
SETTINGS = """\
lake = "a lake"
table_format = "iceberg"
catalog = "sqlite"
[clusters.web-shop]
bootstrap = "127.0.0.1:{port}"
[topics.orders]
format = "json"
"""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as server:
        yield server.port


@pytest.fixture
def penstock(port: int, tmp_path: Path) -> Penstock:
    """Runs a command that succeeds."""
    settings = tmp_path / "penstock.toml"
    settings.write_text(SETTINGS.format(port=port))

    def run(*arguments: str) -> Result:
        result = CliRunner().invoke(main, ["--settings", str(settings), *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result

    return run


def publish(port: int, topic: str, values: Sequence[Mapping[str, Any]]) -> None:
    """Append JSON values to partition 0 of a topic."""
    records = [
        Record(offset=number, timestamp=1, value=json.dumps(value).encode()) for number, value in enumerate(values)
    ]
    with Client(port) as client:
        client.create(topic)
        client.produce(topic, record_batch(records))


def rows_by_name(folder: Path, name: str) -> pa.Table:
    """What pyiceberg reads of a table of the catalog."""
    lake = Lake.of(Settings.load(folder / "penstock.toml"))
    return lake.open_catalog().load_table(name).scan().to_arrow()


def test_topics_are_tables_of_the_catalog_and_a_new_field_is_a_new_column(
    penstock: Penstock, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # Polars warns that it has a faster one
    publish(port, "orders", [{"id": 1}, {"id": 2}])
    publish(port, "Page.views", [{"id": 1}])
    penstock("load", "--all")
    publish(port, "orders", [{"id": 3, "note": "gift"}])
    penstock("load", "--all")
    lake = Lake.of(Settings.load(tmp_path / "penstock.toml"))
    names = lake.open_catalog().list_tables("web_shop")
    assert sorted(names) == [("web_shop", "orders"), ("web_shop", "page_views_6d1896e6")]
    assert lake.topics("web-shop") == ["Page.views", "orders"]
    assert rows_by_name(tmp_path, "web_shop.orders").sort_by("id").select(["id", "note"]).to_pylist() == [
        {"id": 1, "note": None},
        {"id": 2, "note": None},
        {"id": 3, "note": "gift"},
    ]
    table = lake.open_catalog().load_table("web_shop.orders")
    found = pl.scan_iceberg(table).filter(pl.col("note") == "gift").select("id").collect()
    assert found.to_series().to_list() == [3]
    found_by_duckdb = table.scan().to_duckdb("orders").sql("select id from orders where note = 'gift'").fetchall()
    assert found_by_duckdb == [(3,)]
    assert "proven orders: 3 rows" in penstock("verify", "--all", "--files").output
    assert "2 topics, 2 loaded" in penstock("status").output


def test_a_rewind_and_a_replay_give_the_rows_once(penstock: Penstock, port: int, tmp_path: Path) -> None:
    for number in (1, 2):
        publish(port, "orders", [{"id": number}])
        penstock("load", "orders")
    penstock("rewind", "orders", "--version", "1", "--yes")
    assert rows_by_name(tmp_path, "web_shop.orders")["id"].to_pylist() == [1]
    penstock("load", "orders")
    penstock("replay", "orders", "--from", "earliest", "--to", "latest")
    assert sorted(rows_by_name(tmp_path, "web_shop.orders")["id"].to_pylist()) == [1, 2]
    assert "proven orders: 2 rows" in penstock("verify", "orders").output


def test_rows_that_another_program_deletes_are_named_and_a_replay_brings_them_back(
    penstock: Penstock, port: int, tmp_path: Path
) -> None:
    publish(port, "orders", [{"id": number} for number in range(5)])
    penstock("load", "orders")
    lake = Lake.of(Settings.load(tmp_path / "penstock.toml"))
    lake.open_catalog().load_table("web_shop.orders").delete("id = 3")
    words = ["--settings", str(tmp_path / "penstock.toml")]
    verified = CliRunner().invoke(main, [*words, "verify", "orders"])
    assert verified.exit_code == 5
    assert "version 2 changed rows of the table, and Penstock did not write it (overwrite by" in verified.output
    publish(port, "orders", [{"id": 5}])
    assert CliRunner().invoke(main, [*words, "load", "orders"]).exit_code != 0
    penstock("replay", "orders", "--from", "earliest", "--to", "latest")
    penstock("load", "orders")
    assert sorted(rows_by_name(tmp_path, "web_shop.orders")["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    assert "proven orders: 6 rows" in penstock("verify", "orders").output


def test_no_byte_of_an_erased_row_is_left(penstock: Penstock, port: int, tmp_path: Path) -> None:
    publish(port, "orders", [{"id": 1, "name": "zelda"}, {"id": 2, "name": "anna"}, {"id": 3, "name": "tom"}])
    penstock("load", "orders")
    penstock("erase", "orders", "--where", "name = 'zelda'", "--request", "T1", "--yes")
    assert files_with(tmp_path / "a lake", b"zelda")
    penstock("erase", "orders", "--finish")
    certified = penstock("erase", "orders", "--certificate", "T1", "--where", "name = 'zelda'").output
    assert "complete" in certified, certified
    assert files_with(tmp_path / "a lake", b"zelda") == []
    assert sorted(rows_by_name(tmp_path, "web_shop.orders")["id"].to_pylist()) == [2, 3]
    assert "proven orders: 2 rows" in penstock("verify", "orders").output


def files_with(folder: Path, text: bytes) -> list[str]:
    """The names of all files below a folder with this text."""
    return [path.name for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


def test_a_lake_that_was_copied_is_refused_with_the_reason(penstock: Penstock, port: int, tmp_path: Path) -> None:
    publish(port, "orders", [{"id": 1}])
    penstock("load", "orders")
    shutil.copytree(tmp_path / "a lake", tmp_path / "copy")
    settings = tmp_path / "penstock.toml"
    settings.write_text(settings.read_text().replace('"a lake"', '"copy"'))
    for command in ("load", "verify"):
        result = CliRunner().invoke(main, ["--settings", str(settings), command, "orders"])
        assert result.exit_code == 6
        assert f"which is not in the lake {tmp_path}/copy: it belongs to another lake, or the lake" in result.output


def test_a_topic_with_a_delta_table_gets_no_second_table(penstock: Penstock, port: int, tmp_path: Path) -> None:
    publish(port, "orders", [{"id": 1}])
    settings = tmp_path / "penstock.toml"
    iceberg = settings.read_text()
    for first, second, name in (("delta", "iceberg", "delta"), ("iceberg", "delta", "iceberg")):
        settings.write_text(
            iceberg.replace('"a lake"', f'"{first}"').replace('format = "iceberg"', f'format = "{first}"')
        )
        penstock("load", "orders")
        settings.write_text(settings.read_text().replace(f'format = "{first}"', f'format = "{second}"'))
        result = CliRunner().invoke(main, ["--settings", str(settings), "load", "orders"])
        assert result.exit_code == 6
        assert f"the topic has a table of the format {name}" in result.output


def test_a_lake_in_an_object_store_has_its_catalog_in_a_database(port: int, tmp_path: Path) -> None:
    settings = tmp_path / "penstock.toml"
    with object_store() as store:
        options = "".join(f"{name} = {value!r}\n" for name, value in store.options.items())
        text = SETTINGS.format(port=port).replace('"a lake"', f'"s3://{BUCKET}/lake"')
        settings.write_text(f"{text}[lake_options]\n{options}")
        refused = CliRunner().invoke(main, ["--settings", str(settings), "load", "orders"])
        assert 'catalog: Iceberg tables in an object store need `type = "sql"` or "rest"' in refused.output
        catalog = f'{{ type = "sql", uri = "sqlite:///{tmp_path}/catalog.db" }}'
        settings.write_text(settings.read_text().replace('catalog = "sqlite"', f"catalog = {catalog}"))
        for number in (1, 2, 3):
            publish(port, "orders", [{"id": number}])
            for words in (["load"], ["verify"], ["clean", "--delete"]):
                result = CliRunner().invoke(main, ["--settings", str(settings), words[0], "orders", *words[1:]])
                assert result.exit_code == 0, result.output
        assert rows_by_name(tmp_path, "web_shop.orders").sort_by("id")["id"].to_pylist() == [1, 2, 3]


@pytest.mark.slow
def test_a_lake_can_have_its_tables_in_a_rest_catalog(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "penstock.toml"
    monkeypatch.setenv("CATALOG_TOKEN", SECRET)
    with rest_catalog(tmp_path / "catalog") as uri:
        catalog = f'{{ type = "rest", uri = "{uri}", token = "env:CATALOG_TOKEN" }}'
        settings.write_text(SETTINGS.format(port=port).replace('catalog = "sqlite"', f"catalog = {catalog}"))
        for number in (1, 2, 3):
            publish(port, "orders", [{"id": number, "name": "zelda" if number == 2 else "anna"}])
            for words in ("load", "verify", "clean --delete"):
                command, *options = words.split()
                result = CliRunner().invoke(main, ["--settings", str(settings), command, "orders", *options])
                assert result.exit_code == 0, result.output
                assert SECRET not in result.output
        for arguments in (["--where", "name = 'zelda'", "--yes"], ["--finish"]):
            result = CliRunner().invoke(main, ["--settings", str(settings), "erase", "orders", *arguments])
            assert result.exit_code == 0, result.output
        assert rows_by_name(tmp_path, "web_shop.orders").sort_by("id")["id"].to_pylist() == [1, 3]
        assert files_with(tmp_path / "a lake", b"zelda") == []
        assert files_with(tmp_path / "a lake", SECRET.encode()) == []
