"""Other engines read a typed table through changes of its schema, all with the same result."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
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
_MOMENT = {"type": "long", "logicalType": "timestamp-millis"}


def _record(name: str, **fields: Any) -> dict[str, Any]:
    """A type that is a record with these fields."""
    members = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": members}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


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
        "place": {"type": _record("Place", code="string")},
        "place:grown": {"type": _record("Place", code="string", floor=["null", "int"])},
        "moment": {"type": _MOMENT},
        "counts": {"type": {"type": "map", "values": "long"}},
        "lines": {"type": _array(_record("Line", sku="string", moment=_MOMENT))},
        "lines:grown": {"type": _array(_record("Line", sku="string", moment=_MOMENT, tags=_array("string")))},
        "ref": {"type": ["null", "int", "string"]},
        "ref:grown": {"type": ["null", "string", _record("Ref", key="long"), "int"]},
    }
    return [{"name": name.partition(":")[0], **kinds[name]} for name in names]


_BEGIN = datetime(2024, 2, 29, 23, 59, 59, 999_000, UTC)
# The fields that most schemas have, and what the first one writes into them.
_ALL = ("id", "amount", "moment", "counts", "lines", "ref")
_FIRST: dict[str, Any] = {
    "moment": _BEGIN,
    "counts": {"a": 1, "\u20ac": -(2**63)},
    "lines": [{"sku": "x", "moment": _BEGIN}, {"sku": "", "moment": datetime(1900, 1, 1, tzinfo=UTC)}],
    "ref": 7,
}
_NO_REF = {"member0": None, "member1": None, "member2": None}
CHANGES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]] = {
    "begin": (
        fields(*_ALL, "customer", "price", "city", "place"),
        {**_FIRST, "customer": "Ada", "price": 5, "city": "Ulm", "place": {"code": "a"}},
        {
            **_FIRST,
            "lines": [{**line, "tags": None} for line in _FIRST["lines"]],
            "ref": {**_NO_REF, "member0": 7},
            "customer": "Ada",
            "price": 5,
            "city": "Ulm",
            "place": {"code": "a", "floor": None},
        },
    ),
    "a field is added": (
        fields(*_ALL, "customer", "price", "city", "place", "note"),
        {"ref": "r", "customer": "Bob", "price": 6, "city": "Bonn", "place": {"code": "b"}, "note": "x"},
        {
            "ref": {**_NO_REF, "member1": "r"},
            "customer": "Bob",
            "price": 6,
            "city": "Bonn",
            "place": {"code": "b", "floor": None},
            "note": "x",
        },
    ),
    "a field is dropped": (
        fields(*_ALL, "customer", "price", "place", "note"),
        {"customer": "Cem", "price": 7, "place": {"code": "c"}, "note": None},
        {"customer": "Cem", "price": 7, "place": {"code": "c", "floor": None}},
    ),
    "a field is renamed": (
        fields(*_ALL, "buyer", "price", "place", "note"),
        {"buyer": "Dee", "price": 8, "place": {"code": "d"}, "note": "y"},
        {"customer": "Dee", "price": 8, "place": {"code": "d", "floor": None}, "note": "y"},
    ),
    "a field has another type": (
        fields(*_ALL, "buyer", "price:text", "place", "note"),
        {"buyer": "Eva", "price": "9 EUR", "place": {"code": "e"}, "note": None},
        {"customer": "Eva", "price_2": "9 EUR", "place": {"code": "e", "floor": None}},
    ),
    "a struct grows": (
        fields(*_ALL, "buyer", "price:text", "place:grown", "note"),
        {"buyer": "Flo", "price": "10 EUR", "place": {"code": "f", "floor": 3}, "note": "z"},
        {"customer": "Flo", "price_2": "10 EUR", "place": {"code": "f", "floor": 3}, "note": "z"},
    ),
    "a union and the records in an array grow": (
        fields("id", "moment", "counts", "lines:grown", "ref:grown"),
        {"lines": [{"sku": "y", "moment": _BEGIN, "tags": ["new", ""]}], "ref": {"key": 2**40}},
        {
            "lines": [{"sku": "y", "moment": _BEGIN, "tags": ["new", ""]}],
            "ref": {**_NO_REF, "member2": {"key": 2**40}},
            "amount": None,
        },
    ),
    "a union has its types in another order": (
        fields("id", "moment", "counts", "lines:grown", "ref:grown"),
        {"ref": "s"},
        {"ref": {**_NO_REF, "member1": "s"}, "amount": None},
    ),
}
"""For each schema its fields, a value, and what the columns of the table hold of it; null is left out."""
COLUMNS = [
    *("id", "amount", "moment", "counts", "lines", "ref", "customer", "price", "city", "place", "note", "price_2"),
    *("_tombstone", "_error"),
]
_EMPTY: dict[str, Any] = {"moment": datetime(1970, 1, 1, tzinfo=UTC), "counts": {}, "lines": [], "ref": None}
EXPECTED: list[dict[str, Any]] = [
    {
        **dict.fromkeys(COLUMNS),
        "id": number,
        "amount": Decimal(number) / 4,
        "_tombstone": False,
        **_EMPTY,
        **columns,
    }
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
            record = {"id": number, "amount": Decimal(number) / 4, **_EMPTY, **value}
            fastavro.schemaless_writer(body, fastavro.parse_schema(schema), record)
            append(fake.logs[0], [frame + body.getvalue()])
            load = topic.load()
            assert (load.error, load.rows, load.bad_records) == (None, 1, 0)
        append(fake.logs[0], [None])
        assert topic.load().error is None
        yield DeltaTable(topic.table.uri)


def with_map(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its map as a dict: some libraries give pairs."""
    return {**row, "counts": None if row["counts"] is None else dict(row["counts"])}


def read_with_deltalake(table: DeltaTable) -> list[dict[str, Any]]:
    rows = table.to_pyarrow_table().sort_by("_kafka_offset").select(COLUMNS).to_pylist()
    return list(map(with_map, rows))


def read_with_duckdb(table: DeltaTable) -> list[dict[str, Any]]:
    query = f"SELECT {', '.join(COLUMNS)} FROM clicks ORDER BY _kafka_offset"
    with duckdb.connect() as database:
        database.register("clicks", table.to_pyarrow_dataset())
        rows = database.sql(query).to_arrow_table().to_pylist()
    return list(map(with_map, rows))


def read_with_polars(table: DeltaTable) -> list[dict[str, Any]]:
    rows = pl.scan_delta(table.table_uri).sort("_kafka_offset").select(COLUMNS).collect().to_dicts()
    return list(map(with_map, rows))


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
    assert [in_utc(row.asDict(recursive=True)) for row in rows] == EXPECTED


def in_utc(value: Any) -> Any:
    """A value whose times have a zone: Spark gives them in local time and without one."""
    if isinstance(value, dict):
        return {name: in_utc(member) for name, member in value.items()}
    if isinstance(value, list):
        return [in_utc(item) for item in value]
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def test_each_change_is_a_new_column_or_no_column_and_no_column_changes_its_type(table: DeltaTable) -> None:
    assert [entry["operation"] for entry in table.history()].count("WRITE") == len(CHANGES) + 1
    names = [field.name for field in table.schema().fields]
    assert names[names.index("id") :] == [name for name in COLUMNS if not name.startswith("_")]
