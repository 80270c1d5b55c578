"""Orders in Avro: records with 17 fields and about 200 bytes."""

import io
import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

FIELDS: Mapping[str, Any] = {
    "id": "long",
    "customer": "string",
    "sku": "string",
    "note": "string",
    "status": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED", "RETURNED"]},
    "quantity": "int",
    "price": "double",
    "latitude": "double",
    "longitude": "double",
    "at": {"type": "long", "logicalType": "timestamp-millis"},
    "coupon": ["null", "string"],
    "score": ["null", "double"],
    "gift": "boolean",
    "address": {
        "type": "record",
        "name": "Address",
        "fields": [{"name": "street", "type": "string"}, {"name": "zip", "type": ["null", "int"]}],
    },
    "tags": {"type": "array", "items": "string"},
    "day": {"type": "int", "logicalType": "date"},
    "total": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
}
"""The fields of an order with their Avro types."""
COLUMNS = pa.schema(
    {
        "id": pa.int64(),
        "customer": pa.string(),
        "sku": pa.string(),
        "note": pa.string(),
        "status": pa.string(),
        "quantity": pa.int64(),
        "price": pa.float64(),
        "latitude": pa.float64(),
        "longitude": pa.float64(),
        "at": pa.timestamp("us", tz="UTC"),
        "coupon": pa.string(),
        "score": pa.float64(),
        "gift": pa.bool_(),
        "address": pa.struct({"street": pa.string(), "zip": pa.int64()}),
        "tags": pa.list_(pa.string()),
        "day": pa.date32(),
        "total": pa.decimal128(38, 2),
    }
)
"""The columns of a table of orders."""


def schema_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The Avro schema of orders with these fields."""
    return {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def order(rng: random.Random) -> dict[str, Any]:
    """A random order, as fastavro takes and gives it."""
    return {
        "id": rng.getrandbits(50),
        "customer": f"customer-{rng.randrange(10**9)}",
        "sku": f"SKU{rng.randrange(10**12):012d}",
        "note": "please deliver it to the neighbours next door, if nobody opens at noon",
        "status": rng.choice(("NEW", "PAID")),
        "quantity": rng.randrange(100),
        "price": rng.random() * 100,
        "latitude": rng.random(),
        "longitude": rng.random(),
        "at": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(10**6)),
        "coupon": rng.choice((None, "SUMMER")),
        "score": rng.choice((None, 0.5)),
        "gift": True,
        "address": {"street": f"Main street {rng.randrange(1000)}", "zip": rng.choice((None, 12345))},
        "tags": ["a-tag", "another", "third"][: rng.randrange(4)],
        "day": date(2024, 1, 2),
        "total": Decimal(rng.randrange(10**8)).scaleb(-2),
    }


def framed(schema_id: int, schema: Any, record: Any) -> bytes:
    """The record in Avro, in the frame of Confluent's serializers."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return b"\0" + schema_id.to_bytes(4, "big") + stream.getvalue()
