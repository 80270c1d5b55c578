"""A condition means what SQL means by it, with unknown for null; a wrong one names its position, and no value."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.layout.conditions import one_of, parse_condition
from resources.errors import ConditionInvalid
from resources.machines.duckdb_connections import connect_duckdb

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
ROWS = pa.RecordBatch.from_pylist(
    [
        {
            "name": "Ann",
            "age": 20,
            "at": {"city": "Delft", "zip": 7},
            "ok": True,
            "headers": [{"key": "a", "value": b"1"}],
        },
        {"name": "Bob's", "age": None, "at": {"city": None, "zip": 8}, "ok": False, "headers": None},
        {"name": None, "age": 30, "at": None, "ok": None, "headers": []},
        {
            "name": "Zoë",
            "age": -5,
            "at": {"city": "Goes", "zip": None},
            "ok": True,
            "headers": [{"key": "a", "value": b"0"}, {"key": "b", "value": b"x"}, {"key": "a", "value": b"1"}],
        },
    ],
    schema=pa.schema(
        [
            ("name", pa.string()),
            ("age", pa.int32()),
            ("at", pa.struct([("city", pa.string()), ("zip", pa.int64())])),
            ("ok", pa.bool_()),
            ("headers", pa.list_(_HEADER)),
        ]
    ),
)


def matches(text: str) -> list[int]:
    mask = parse_condition(text).bound(ROWS.schema, "headers").mask(ROWS)
    return [number for number, is_true in enumerate(mask.to_pylist()) if is_true]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("name = 'Ann'", [0]),
        ("name = 'Bob''s'", [1]),
        ("NAME is null or name <> 'Ann'".replace("NAME", "name"), [1, 2, 3]),
        ("name != 'Ann'", [1, 3]),
        ("not name = 'Ann'", [1, 3]),
        ("age >= 20 and age < 30", [0]),
        ("age in (20, 30)", [0, 2]),
        ("age not in (20)", [2, 3]),
        ("age is not null and not (age > 0)", [3]),
        ("at.city = 'Delft' or at.zip = 8", [0, 1]),
        ("at.city is null", [1, 2]),
        ('"at"."zip" is null', [2, 3]),
        ("ok = true", [0, 3]),
        ("ok <> true", [1]),
        ("header('a') = '1'", [0, 3]),
        ("header('a') is null", [1, 2]),
        ("header('b') in ('x', 'y')", [3]),
        ("age > 19.5", [0, 2]),
        ("name = 'Ann' or age = 30 and ok = true", [0]),
        ("(name = 'Ann' or age = 30) and ok is null", [2]),
    ],
)
def test_the_rows_for_which_a_condition_is_true(text: str, rows: list[int]) -> None:
    assert matches(text) == rows


_ATOMS = st.sampled_from(
    [
        "name = 'Ann'",
        "name <> 'Zoë'",
        "age > 0",
        "age <= 20",
        "age in (20, -5)",
        "age not in (20)",
        "ok = true",
        "name is null",
        "ok is not null",
    ]
)
_TEXTS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        inner.map(lambda text: f"not ({text})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) and ({pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]} or {pair[1]}"),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(_TEXTS)
def test_a_condition_means_what_a_database_means_by_it(text: str) -> None:
    with connect_duckdb() as database:
        database.register(
            "people", pa.table([ROWS.column(name) for name in ("name", "age", "ok")], ["name", "age", "ok"])
        )
        counted = database.sql(f"select count(*) from people where {text}").fetchall()
    assert [(len(matches(text)),)] == counted


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("name", 5),
        ("name =", 7),
        ("name = 'Ann", 8),
        ("name = Ann", 8),
        ("name = null", 8),
        ("= 'Ann'", 1),
        ("name = 'Ann' 'Bob'", 14),
        ("name in ()", 10),
        ("name in ('a'", 13),
        ("(name = 'a'", 12),
        ("age = 'twenty'", 7),
        ("age = 99999999999999999999", 7),
        ("name = 20", 8),
        ("ok = 'yes'", 6),
        ("at = 'Delft'", 6),
        ("town = 'Delft'", 1),
        ("ok = true and at.town = 'Delft'", 15),
        ("header(1) = 'x'", 1),
        ("name ; 'x'", 6),
        ("not " * 60 + "ok = true", 201),
    ],
)
def test_an_error_has_the_position_and_no_value(text: str, position: int) -> None:
    with pytest.raises(ConditionInvalid, match=f"wrong at character {position}: ") as error:
        matches(text)
    for value in ("Ann", "twenty", "yes", "99999999999999999999"):
        assert value not in str(error.value)


def values_of(kind: pa.DataType, *values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], ["c"])


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (values_of(pa.binary(), b"key", b"x"), "c = 'key'"),
        (values_of(pa.timestamp("us", "UTC"), datetime(2026, 1, 2, tzinfo=UTC), None), "c >= '2026-01-02T00:00:00Z'"),
        (values_of(pa.float64(), 1.5, None), "c = 1.5"),
        (values_of(pa.float64(), 2.0, None), "c = 2"),
        (values_of(pa.date32(), datetime(2026, 1, 2, tzinfo=UTC).date(), None), "c = '2026-01-02'"),
        (pa.RecordBatch.from_arrays([pa.array(["1.50"]).cast(pa.decimal128(5, 2))], ["c"]), "c = 1.5"),
    ],
)
def test_values_of_many_types_are_compared(rows: pa.RecordBatch, text: str) -> None:
    assert parse_condition(text).bound(rows.schema, "headers").mask(rows).to_pylist()[0] is True


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.string(), ["a", "b"], [True, False]),
        (pa.int64(), [1, 5], [True, False]),
        (pa.binary(), [b"a", b"c"], [True, False]),
    ],
)
def test_values_of_a_file_fit_the_column(kind: pa.DataType, values: list[Any], expected: list[bool]) -> None:
    texts = [str(values[0].decode() if isinstance(values[0], bytes) else values[0]), "7"]
    rows = values_of(kind, *values)
    assert one_of("c", texts).bound(rows.schema, "headers").mask(rows).to_pylist() == expected


def test_a_value_of_a_file_that_does_not_fit_is_not_shown() -> None:
    with pytest.raises(ConditionInvalid, match="a value of the file is none of it") as error:
        one_of("age", ["secret"]).bound(ROWS.schema, "headers")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("show", [repr, str])
def test_a_condition_does_not_show_its_values(show: Callable[[object], str]) -> None:
    assert "Ann" not in show(parse_condition("name = 'Ann' or name in ('Ann')"))


def test_the_values_to_search_in_bytes_are_those_that_a_row_must_have() -> None:
    assert parse_condition("name = 'Ann' or age in (20) and not name = 'Bob' or ok = true").texts() == ["Ann", "20"]
