"""Records as lines of text: JSON for scripts, fields between tabs for people."""

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click
import pyarrow as pa

from kafka_io.model import BrokerPartition
from pipelines.console import printable

_NO_TIME = -1
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is written by hand, for Z is shorter than its offset
_CHUNK_ROWS = 1000
_JSON = json.JSONEncoder(separators=(",", ":"))  # `dumps` makes one for every call


@dataclass(frozen=True, slots=True)
class Row:
    """One record. 0.7 has an `inner`, and no more than that and a value; a time is in milliseconds, -1 for none."""

    partition: BrokerPartition
    offset: int
    inner: int | None
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[Mapping[str, Any]]


def rows_of(batches: Iterable[tuple[BrokerPartition, pa.RecordBatch]]) -> Iterator[list[Row]]:
    """The rows of batches of any generation, some at a time."""
    for partition, batch in batches:
        for at in range(0, batch.num_rows, _CHUNK_ROWS):
            yield [Row(partition, *fields) for fields in _fields(batch.slice(at, _CHUNK_ROWS))]


def _fields(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if "timestamp" in columns:
        columns["timestamp"] = columns["timestamp"].cast(pa.int64())  # some times are beyond Python's calendar
    absent: Mapping[str, Any] = {"timestamp": _NO_TIME, "headers": []}
    names = ("offset", "inner", "timestamp", "key", "value", "headers")
    return zip(
        *(columns[name].to_pylist() if name in columns else [absent.get(name)] * batch.num_rows for name in names),
        strict=True,
    )


def first_rows(chunks: Iterable[list[Row]], most: int | None) -> Iterator[list[Row]]:
    """At most so many rows; all without."""
    for chunk in chunks:
        if most is not None and len(chunk) >= most:
            yield chunk[:most]
            return
        yield chunk
        most = most if most is None else most - len(chunk)


def as_json(row: Row) -> str:
    """One JSON object in ASCII. Bytes are text where they are UTF-8, else `{"base64": ...}`; 0.7 has two more fields.

    A time is in ISO 8601, null for none, and a number of milliseconds where no calendar has it.
    """
    partition, offset = {"partition": row.partition.partition}, {"offset": row.offset}
    if row.inner is not None:
        partition, offset = {"broker": row.partition.holder, **partition}, {**offset, "inner": row.inner}
    return _JSON.encode(
        {
            **partition,
            **offset,
            "timestamp": _time(row.timestamp_ms),
            "key": _json_bytes(row.key),
            "value": _json_bytes(row.value),
            "headers": [{"key": one["key"], "value": _json_bytes(one["value"])} for one in row.headers],
        }
    )


def as_line(row: Row) -> str:
    """`partition offset time key value` between tabs, with headers behind them; `-` stands for what is not there.

    Control characters are shown, not obeyed (X05), so a record is always one line.
    """
    time = _time(row.timestamp_ms)
    fields = [
        click.style(str(row.partition), fg="green"),
        str(row.offset),
        click.style("-" if time is None else str(time), dim=True),
        click.style(_text(row.key), fg="cyan"),
        _text(row.value),
        *(click.style(f"{printable(one['key'])}={_text(one['value'])}", fg="yellow") for one in row.headers),
    ]
    return "\t".join(fields)


def write(lines: Iterable[str]) -> None:
    """Put lines on stdout at once; colours only on a terminal, and where they are wanted (NO_COLOR)."""
    click.echo("\n".join(lines), color=False if os.environ.get("NO_COLOR") else None)


def _time(ms: int) -> str | int | None:
    if ms == _NO_TIME:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") + "Z"
    except OverflowError:
        return ms


def _json_bytes(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _text(data: bytes | None) -> str:
    found = _json_bytes(data)
    if found is None:
        return "-"
    return printable(found) if isinstance(found, str) else f"base64:{found['base64']}"
