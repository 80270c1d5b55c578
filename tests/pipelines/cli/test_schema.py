"""`penstock schema` shows the columns of a typed table, and those that the next load adds."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from click.testing import CliRunner, Result

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.cli.main import main

Penstock = Callable[..., Result]
FIRST = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "amount", "type": "double"}],
}
SECOND = {
    **FIRST,
    "fields": [
        {"name": "id", "type": "long", "doc": "the number of the order"},
        {"name": "amount", "type": "string"},
        {"name": "lines", "type": {"type": "array", "items": "string"}, "doc": "what was bought"},
    ],
}
IDS, OF_IDS = "_kafka_schema_id", ["the", "id", "of", "the", "value's", "schema", "in", "the", "registry"]
MET_TEXT = [["PART", "ID", "DIGEST", "REGISTRY", "SINCE"], ["value", "1", ANY, "main", ANY]]
RETYPED = "the field 'amount' had the type double before: the new column amount_2 holds it, with the type string"


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as registry:
        yield registry


@pytest.fixture
def orders(registry: EmbeddedSchemaRegistry, tmp_path: Path) -> Iterator[Penstock]:
    """Runs a command with the settings of the topic `orders`, which has values in Avro."""
    registry.register("orders-value", json.dumps(FIRST))
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        settings = tmp_path / "penstock.toml"
        settings.write_text(
            f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n'
            f'[registries.main]\nurl = "{registry.url}"\n[topics.orders]\nformat = "avro"\n[caps]\nattempts = 2\n'
        )

        def run(*arguments: str, lines: str | None = None) -> Result:
            return CliRunner().invoke(main, ["--settings", str(settings), *arguments], input=lines)

        yield run


def publish(orders: Penstock, *values: Any) -> None:
    """Send these values with the newest schema."""
    lines = "".join(f"{json.dumps(value)}\n" for value in values)
    published = orders("publish", "orders", "-", "--registry", "main", lines=lines)
    assert published.exit_code == 0, published.output


def load(orders: Penstock) -> None:
    loaded = orders("load", "orders")
    assert loaded.exit_code == 0, loaded.output


def cells(result: Result) -> list[list[str]]:
    """The lines of the tables that a command has printed, without the spaces between cells."""
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_a_raw_table_has_no_columns_for_fields(penstock: Penstock) -> None:
    result = penstock("schema", "clicks")
    assert (result.exit_code, result.stdout.splitlines()) == (0, ["NAME  TYPE  FIELD  NEW  COMMENT"])


def test_the_columns_of_a_topic_without_a_table_are_new(penstock: Penstock) -> None:
    result = penstock("schema", "notes")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [["value", "string", "value", "new"]]


def test_the_schema_is_json_for_scripts(penstock: Penstock) -> None:
    [shown] = json.loads(penstock("schema", "notes", "--json").stdout)["results"]
    [column] = shown["columns"]
    assert (shown["topic"], shown["format"], shown["version"], shown["warnings"]) == ("notes", "text", None, [])
    assert column == {"name": "value", "type": "string", "field": "value", "comment": "", "is_new": True}


def test_the_newest_schema_in_the_registry_gives_the_columns_of_the_first_load(orders: Penstock) -> None:
    assert cells(orders("schema", "orders")) == [
        ["ID", "TYPE", "MET", "SUBJECTS"],
        ["1", "AVRO", "newest", "orders-value", "version", "1"],
        ["NAME", "TYPE", "FIELD", "NEW", "COMMENT"],
        [IDS, "long", IDS, "new", *OF_IDS],
        ["id", "long", "id", "new"],
        ["amount", "double", "amount", "new"],
    ]


@pytest.mark.slow
def test_a_new_schema_in_the_registry_shows_what_the_next_load_adds(
    orders: Penstock, registry: EmbeddedSchemaRegistry
) -> None:
    publish(orders, {"id": 1, "amount": 7.5})
    load(orders)
    registry.register("orders-value", json.dumps(SECOND))
    shown = orders("schema", "orders")
    assert cells(shown) == [
        ["ID", "TYPE", "MET", "SUBJECTS"],
        ["1", "AVRO", "met", "orders-value", "version", "1"],
        ["2", "AVRO", "newest", "orders-value", "version", "2"],
        *MET_TEXT,
        ["NAME", "TYPE", "FIELD", "NEW", "COMMENT"],
        [IDS, "long", IDS, *OF_IDS],
        ["id", "long", "id"],
        ["amount", "double", "amount"],
        ["amount_2", "string", "amount", "new"],
        ["lines", "array<string>", "lines", "new", "what", "was", "bought"],
    ]
    assert RETYPED in " ".join(shown.stderr.split())
    publish(orders, {"id": 2, "amount": "8 EUR", "lines": ["tea"]})
    load(orders)
    [of_table] = json.loads(orders("schema", "orders", "--json").stdout)["results"]
    assert [(schema["id"], schema["is_met"]) for schema in of_table["schemas"]] == [(1, True), (2, True)]
    assert [(column["name"], column["is_new"]) for column in of_table["columns"]] == [
        (name, False) for name in (IDS, "id", "amount", "amount_2", "lines")
    ]
    assert of_table["warnings"] == []


def test_without_an_answer_of_the_registry_the_columns_of_the_table_are_shown(
    orders: Penstock, registry: EmbeddedSchemaRegistry
) -> None:
    publish(orders, {"id": 1, "amount": 7.5})
    load(orders)
    registry.close()
    shown = orders("schema", "orders")
    assert cells(shown) == [
        *MET_TEXT,
        ["NAME", "TYPE", "FIELD", "NEW", "COMMENT"],
        [IDS, "long", IDS, *OF_IDS],
        ["id", "long", "id"],
        ["amount", "double", "amount"],
    ]
    assert "the schemas are not shown, because the registry cannot be asked" in " ".join(shown.stderr.split())
