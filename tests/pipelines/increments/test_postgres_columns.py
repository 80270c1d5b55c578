"""Columns of Arrow arrive in Postgres with their values; what Postgres cannot store is refused."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from pipelines.increments.postgres_columns import csv_rows, sql_types
from pipelines.increments.postgres_output import PostgresOutput
from resources.errors import OutputRefused
from tests.pipelines.increments.test_outputs import FIRST, SECOND, change

NOON = datetime(2026, 1, 2, 12, 0, 0, 7, UTC)
NESTED = pa.struct({"a": pa.list_(pa.int32()), "b": pa.binary(), "c": pa.decimal128(5, 2)})
TYPES: list[tuple[pa.DataType, str, list[Any], list[Any]]] = [
    (pa.bool_(), "boolean", [True, None], [True, None]),
    (pa.int8(), "smallint", [-128, None], [-128, None]),
    (pa.int16(), "smallint", [-(2**15), None], [-(2**15), None]),
    (pa.int32(), "integer", [-(2**31), None], [-(2**31), None]),
    (pa.int64(), "bigint", [-(2**63), None], [-(2**63), None]),
    (pa.uint8(), "smallint", [255, None], [255, None]),
    (pa.uint16(), "integer", [2**16 - 1, None], [2**16 - 1, None]),
    (pa.uint32(), "bigint", [2**32 - 1, None], [2**32 - 1, None]),
    (pa.uint64(), "numeric(20,0)", [2**64 - 1, None], [Decimal(2**64 - 1), None]),
    (pa.float16(), "real", [0.5, None], [0.5, None]),
    (pa.float32(), "real", [0.25, None, float("inf")], [0.25, None, float("inf")]),
    (pa.float64(), "double precision", [1e-310, None, 0.1], [1e-310, None, 0.1]),
    (pa.decimal128(38, 10), "numeric(38,10)", [Decimal("-0.0000000001"), None], [Decimal("-0.0000000001"), None]),
    (pa.decimal256(50, 2), "numeric(50,2)", [Decimal("9" * 48 + ".25"), None], [Decimal("9" * 48 + ".25"), None]),
    (pa.string(), "text", ["", None, 'a"b,\n\\.', "\\N", "ü"], ["", None, 'a"b,\n\\.', "\\N", "ü"]),
    (pa.large_string(), "text", ["\\.", None], ["\\.", None]),
    (pa.string_view(), "text", ["a", None], ["a", None]),
    (pa.binary(), "bytea", [b"\x00\xff\\", None, b""], [b"\x00\xff\\", None, b""]),
    (pa.large_binary(), "bytea", [b"a", None], [b"a", None]),
    (pa.binary(2), "bytea", [b"ab", None], [b"ab", None]),
    (pa.date32(), "date", [date(1969, 12, 31), None], [date(1969, 12, 31), None]),
    (pa.date64(), "date", [date(2026, 1, 2), None], [date(2026, 1, 2), None]),
    (pa.time32("s"), "time without time zone", [time(1, 2, 3), None], [time(1, 2, 3), None]),
    (pa.time64("us"), "time without time zone", [time(1, 2, 3, 4), None], [time(1, 2, 3, 4), None]),
    (pa.timestamp("us", "UTC"), "timestamp with time zone", [NOON, None], [NOON, None]),
    (pa.timestamp("ms", "America/New_York"), "timestamp with time zone", [NOON.replace(microsecond=0)], []),
    (pa.timestamp("ns", "UTC"), "timestamp with time zone", [NOON, None], [NOON, None]),
    (pa.timestamp("us"), "timestamp without time zone", [datetime(1969, 1, 2, 3, 4, 5, 6), None], []),  # noqa: DTZ001
    (pa.dictionary(pa.int8(), pa.string()), "text", ["a", None, "a"], ["a", None, "a"]),
    (pa.null(), "text", [None], [None]),
    (
        NESTED,
        "jsonb",
        [{"a": [1, None], "b": b"x", "c": Decimal("1.50")}, None],
        [{"a": [1, None], "b": "eA==", "c": "1.50"}, None],
    ),
    (pa.list_(pa.float64()), "jsonb", [[], [0.1, float("nan")], None], [[], [0.1, None], None]),
    (pa.map_(pa.string(), pa.int64()), "jsonb", [[("k", 1)], [], None], [{"k": 1}, {}, None]),
    (pa.uuid(), "bytea", [b"\x01" * 16, None], [b"\x01" * 16, None]),
]


@pytest.mark.postgres
def test_each_type_arrives_with_its_values(postgres_dsn: str) -> None:
    output = PostgresOutput(dsn=postgres_dsn, table="t")
    columns = {}
    for number, (kind, _, values, _) in enumerate(TYPES):
        storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        column = pa.array([*values, *[None] * (5 - len(values))], storage)
        columns[f"c{number}"] = pa.ExtensionArray.from_storage(kind, column) if kind != storage else column
    output.begin("c", "s").commit(change(pa.table(columns)))
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("set timezone = 'UTC'")
        kinds = connection.execute(
            "select attname, format_type(atttypid, atttypmod) from pg_attribute "
            "where attrelid = 't'::regclass and attnum > 0"
        ).fetchall()
        stored = list(zip(*connection.execute("select * from t").fetchall(), strict=True))
    assert dict(kinds) == {f"c{number}": sql_type for number, (_, sql_type, *_) in enumerate(TYPES)}
    for column, (kind, _, values, expected) in zip(stored, TYPES, strict=True):
        wanted = expected or values
        assert list(column[: len(wanted)]) == wanted, kind
        assert set(map(type, column)) <= {type(None), *map(type, wanted)}, kind


@pytest.mark.postgres
def test_a_time_after_the_year_9999_arrives(postgres_dsn: str) -> None:
    """Wrong clocks are in the rows of a topic, too."""
    year_10000 = pa.array([253_402_300_800_000_000], pa.timestamp("us", "UTC"))
    PostgresOutput(dsn=postgres_dsn, table="t").begin("c", "s").commit(change(pa.table({"at": year_10000})))
    with psycopg.connect(postgres_dsn) as connection:
        assert connection.execute("select extract(year from at at time zone 'UTC')::int from t").fetchall() == [
            (10000,)
        ]


@pytest.mark.postgres
def test_values_fit_a_column_that_is_wider_than_the_rows(postgres_dsn: str) -> None:
    output = PostgresOutput(dsn=postgres_dsn, table="t")
    output.begin("c", "s").commit(change(pa.table({"a": pa.array([2**40]), "b": [0.5]})))
    output.begin("c", "s").commit(change(pa.table({"a": pa.array([7], pa.int8()), "b": [3]}), SECOND))
    with psycopg.connect(postgres_dsn) as connection:
        assert connection.execute("select a, b from t order by a").fetchall() == [(7, 3.0), (2**40, 0.5)]


@pytest.mark.postgres
@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a\0b"]),
        pa.array([[{"k": "a\0b"}]]),
        pa.array([-62_135_596_800_000_001], pa.timestamp("us")),  # the year 0
    ],
    ids=str,
)
def test_values_that_postgres_does_not_know_are_refused(values: pa.Array, postgres_dsn: str) -> None:
    output = PostgresOutput(dsn=postgres_dsn, table="t")
    output.begin("c", "s").commit(change(pa.table({"v": values.slice(1)})))
    with pytest.raises(OutputRefused, match="does not accept the increment"):
        output.begin("c", "s").commit(change(pa.table({"v": values}), SECOND))
    assert output.begin("c", "s").progress == FIRST


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.month_day_nano_interval()], ids=str)
def test_a_type_that_postgres_does_not_have_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(OutputRefused, match="the column c has the type"):
        sql_types(pa.schema({"c": kind}))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1], pa.timestamp("ns")),
        pa.array([1], pa.time64("ns")),
        pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[2**62]], pa.list_(pa.timestamp("us"))),
    ],
    ids=str,
)
def test_a_value_that_would_change_is_refused(values: pa.Array) -> None:
    with pytest.raises(OutputRefused, match="values of the column c"):
        csv_rows(pa.record_batch({"c": values}))
