"""Other engines read a typed table through changes of its schema, all with the same result."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import BytesIO
from typing import Any

import duckdb
import fastavro
import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

_AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}


def fields(*names: str) -> list[dict[str, Any]]:
    """Fields of an Avro record."""
    kinds: dict[str, Any] = {
        "id": {"type": "int"},
        "amount": {"type": _AMOUNT},
        "customer": {"type": "string"},
        "buyer": {"type": "string", "aliases": ["customer"]},
        "price": {"type": "long"},
        "price:text": {"type": "string"},
        "city": {"type": "string"},
        "note": {"type": ["null", "string"]},
        "place": {"type": {"type": "record", "name": "Place", "fields": [{"name": "code", "type": "string"}]}},
        "place:grown": {
            "type": {
                "type": "record",
                "name": "Place",
                "fields": [{"name": "code", "type": "string"}, {"name": "floor", "type": ["null", "int"]}],
            }
        },
    }
    return [{"name": name.partition(":")[0], **kinds[name]} for name in names]


CHANGES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]] = {
    "begin": (
        fields("id", "amount", "customer", "price", "city", "place"),
        {"customer": "Ada", "price": 5, "city": "Ulm", "place": {"code": "a"}},
        {"customer": "Ada", "price": 5, "city": "Ulm", "place": {"code": "a", "floor": None}},
    ),
    "a field is added": (
        fields("id", "amount", "customer", "price", "city", "place", "note"),
        {"customer": "Bob", "price": 6, "city": "Bonn", "place": {"code": "b"}, "note": "x"},
        {"customer": "Bob", "price": 6, "city": "Bonn", "place": {"code": "b", "floor": None}, "note": "x"},
    ),
    "a field is dropped": (
        fields("id", "amount", "customer", "price", "place", "note"),
        {"customer": "Cem", "price": 7, "place": {"code": "c"}, "note": None},
        {"customer": "Cem", "price": 7, "place": {"code": "c", "floor": None}},
    ),
    "a field is renamed": (
        fields("id", "amount", "buyer", "price", "place", "note"),
        {"buyer": "Dee", "price": 8, "place": {"code": "d"}, "note": "y"},
        {"customer": "Dee", "price": 8, "place": {"code": "d", "floor": None}, "note": "y"},
    ),
    "a field has another type": (
        fields("id", "amount", "buyer", "price:text", "place", "note"),
        {"buyer": "Eva", "price": "9 EUR", "place": {"code": "e"}, "note": None},
        {"customer": "Eva", "price_2": "9 EUR", "place": {"code": "e", "floor": None}},
    ),
    "a struct grows": (
        fields("id", "amount", "buyer", "price:text", "place:grown", "note"),
        {"buyer": "Flo", "price": "10 EUR", "place": {"code": "f", "floor": 3}, "note": "z"},
        {"customer": "Flo", "price_2": "10 EUR", "place": {"code": "f", "floor": 3}, "note": "z"},
    ),
}
"""For each schema its fields, a value, and what the columns of the table hold of it; null is left out."""
COLUMNS = ["id", "amount", "customer", "price", "city", "place", "note", "price_2", "_tombstone", "_error"]
EXPECTED: list[dict[str, Any]] = [
    {**dict.fromkeys(COLUMNS), "id": number, "amount": Decimal(number) / 4, "_tombstone": False, **columns}
    for number, (_fields, _value, columns) in enumerate(CHANGES.values())
]
EXPECTED.append({**dict.fromkeys(COLUMNS), "_tombstone": True})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaTable]:
    """A table with a row for each schema, each from a load of its own, and a tombstone."""
    with EmbeddedSchemaRegistry() as registry, FakeCluster(logs={0: log_of([])}) as fake:
        topic = TypedTopic(
            fake=fake,
            folder=tmp_path_factory.mktemp("lake"),
            format_={"format": "avro"},
            registries={"main": {"url": registry.url}},
        )
        for number, (fields, value, _columns) in enumerate(CHANGES.values()):
            schema = {"type": "record", "name": "Order", "fields": fields}
            frame = b"\0" + registry.register("clicks-value", json.dumps(schema)).to_bytes(4, "big")
            body = BytesIO()
            record = {"id": number, "amount": Decimal(number) / 4, **value}
            fastavro.schemaless_writer(body, fastavro.parse_schema(schema), record)
            append(fake.logs[0], [frame + body.getvalue()])
            load = topic.load()
            assert (load.error, load.rows, load.bad_records) == (None, 1, 0)
        append(fake.logs[0], [None])
        assert topic.load().error is None
        yield DeltaTable(topic.table.uri)


def read_with_deltalake(table: DeltaTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pyarrow_table().sort_by("_kafka_offset").select(COLUMNS).to_pylist()
    return rows


def read_with_duckdb(table: DeltaTable) -> list[dict[str, Any]]:
    query = f"SELECT {', '.join(COLUMNS)} FROM clicks ORDER BY _kafka_offset"
    with duckdb.connect() as database:
        database.register("clicks", table.to_pyarrow_dataset())
        rows: list[dict[str, Any]] = database.sql(query).to_arrow_table().to_pylist()
    return rows


def read_with_polars(table: DeltaTable) -> list[dict[str, Any]]:
    return pl.scan_delta(table.table_uri).sort("_kafka_offset").select(COLUMNS).collect().to_dicts()


READERS: dict[str, Callable[[DeltaTable], list[dict[str, Any]]]] = {
    "deltalake": read_with_deltalake,
    "DuckDB": read_with_duckdb,
    "Polars": read_with_polars,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_every_engine_reads_the_table_through_all_changes_with_the_same_result(
    read: Callable[[DeltaTable], list[dict[str, Any]]], table: DeltaTable
) -> None:
    assert read(table) == EXPECTED


@pytest.mark.spark
def test_spark_reads_the_table_through_all_changes_with_the_same_result(table: DeltaTable, spark: SparkSession) -> None:
    """Spark reads the files of the log with the schema of the log: there is no Delta connector for this Spark."""
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    files = spark.read.schema(schema).option("basePath", table.table_uri).parquet(*table.file_uris())
    rows = files.orderBy("_kafka_offset").select(COLUMNS).collect()
    assert [row.asDict(recursive=True) for row in rows] == EXPECTED


def test_each_change_is_a_new_column_or_no_column_and_no_column_changes_its_type(table: DeltaTable) -> None:
    assert [entry["operation"] for entry in table.history()].count("WRITE") == len(CHANGES) + 1
    names = [field.name for field in table.schema().fields]
    assert names[names.index("id") :] == [name for name in COLUMNS if not name.startswith("_")]
