"""Records as lines of text: JSON for scripts, tab-separated fields for people."""

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import click
import pyarrow as pa

from kafka_io.model import BrokerPartition
from pipelines.cli.output import terminal
from pipelines.cli.output.log_lines import printable
from pipelines.tail.shown_value import NOT_DECODED, ShownValue, ShowValues

_NO_TIME = -1
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is written by hand, for Z is shorter than its offset
_CHUNK_ROWS = 1000
_JSON = json.JSONEncoder(separators=(",", ":"))  # json.dumps would create an encoder for every record


@dataclass(frozen=True, slots=True)
class TailRow:
    """One record. `timestamp_ms` is -1 for a record without time.

    A record of 0.7 has only a value and `inner`, its position in a compressed message; `inner` is None otherwise.
    `decoded` has the fields of a decoded value, or the reason why it does not decode.
    """

    partition: BrokerPartition
    offset: int
    inner: int | None
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[Mapping[str, Any]]
    decoded: ShownValue = NOT_DECODED


def rows_of(
    batches: Iterable[tuple[BrokerPartition, pa.RecordBatch]], decode: ShowValues | None = None
) -> Iterator[list[TailRow]]:
    """The rows of batches of any generation, in chunks; `decode` gives the values of a typed topic."""
    for partition, batch in batches:
        for start in range(0, batch.num_rows, _CHUNK_ROWS):
            chunk = batch.slice(start, _CHUNK_ROWS)
            shown_values = decode(chunk) if decode else [NOT_DECODED] * chunk.num_rows
            yield [TailRow(partition, *fields) for fields in _fields(chunk, shown_values)]


def _fields(batch: pa.RecordBatch, shown_values: Sequence[ShownValue]) -> Iterator[tuple[Any, ...]]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if "timestamp" in columns:  # some times are outside the range of Python's datetime
        columns["timestamp"] = columns["timestamp"].cast(pa.int64())
    defaults: Mapping[str, Any] = {"timestamp": _NO_TIME, "headers": []}
    names = ("offset", "inner", "timestamp", "key", "value", "headers")
    missing = {name: [defaults.get(name)] * batch.num_rows for name in names if name not in columns}
    fields = (missing[name] if name in missing else columns[name].to_pylist() for name in names)
    return zip(*fields, shown_values, strict=True)


def first_rows(chunks: Iterable[list[TailRow]], max_rows: int | None) -> Iterator[list[TailRow]]:
    """The first `max_rows` rows; all rows without a maximum."""
    remaining = max_rows
    for chunk in chunks:
        yield chunk[:remaining]
        if remaining is not None:
            remaining -= len(chunk)
            if remaining <= 0:
                return


def as_json(row: TailRow) -> str:
    """A JSON object in ASCII. Bytes are text if they are UTF-8, otherwise `{"base64": ...}`.

    A time is in ISO 8601, null for none, or in milliseconds if ISO 8601 cannot express it. Records of 0.7 have two more
    fields: `broker` and `inner`. A decoded value is an object with its fields; a value that does not decode is shown as
    bytes, with the reason in `error`.
    """
    is_v07 = row.inner is not None
    return _JSON.encode(
        {
            **({"broker": row.partition.holder} if is_v07 else {}),
            "partition": row.partition.partition,
            "offset": row.offset,
            **({"inner": row.inner} if is_v07 else {}),
            "timestamp": _time(row.timestamp_ms),
            "key": _json_bytes(row.key),
            "value": _json_bytes(row.value) if row.decoded.fields is None else _plain(row.decoded.fields),
            **({"error": row.decoded.error} if row.decoded.error is not None else {}),
            "headers": [{"key": header["key"], "value": _json_bytes(header["value"])} for header in row.headers],
        }
    )


def as_line(row: TailRow) -> str:
    """Tab-separated fields: partition, offset, time, key, value, why it does not decode, then the headers.

    A missing field is `-`. A decoded value is JSON.

    Control characters are escaped (fault X05), so a record is always one line.
    """
    time = _time(row.timestamp_ms)
    fields = [
        click.style(f"{row.partition}\t{row.offset}", dim=True),
        click.style("-" if time is None else str(time), dim=True),
        click.style(_text(row.key), fg="cyan"),
        _text(row.value) if row.decoded.fields is None else printable(_JSON.encode(_plain(row.decoded.fields))),
        *([] if row.decoded.error is None else [click.style(f"error: {printable(row.decoded.error)}", fg="red")]),
        *(click.style(f"{printable(header['key'])}={_text(header['value'])}", fg="cyan") for header in row.headers),
    ]
    return "\t".join(fields)


def write(lines: Iterable[str]) -> None:
    """Write lines to stdout in one call, with colours where other results have them."""
    click.echo("\n".join(lines), color=terminal.has_colours(terminal.out))


def _time(ms: int) -> str | int | None:
    if ms == _NO_TIME:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") + "Z"
    except OverflowError:
        return ms


def _plain(value: Any) -> Any:
    """A decoded value as JSON has it: times in ISO 8601, decimals as texts, bytes as in `_json_bytes`."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return _json_bytes(value)
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, Decimal) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def _json_bytes(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _text(data: bytes | None) -> str:
    value = _json_bytes(data)
    if value is None:
        return "-"
    return printable(value) if isinstance(value, str) else f"base64:{value['base64']}"
