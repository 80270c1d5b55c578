"""Lines of `penstock tail`: JSON loses nothing, and control characters of a record reach no terminal."""

import json
from typing import Any

import click
import pytest

from kafka_io.model import BrokerPartition
from kafka_io.records.build import Record, message_set, record_batch
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.v07.decoder import decode_v07
from pipelines.cli.output.tail_lines import TailRow, as_json, as_line, first_rows, rows_of

P3, OLD_PARTITION = BrokerPartition(None, 3), BrokerPartition(1, 0)
MS = 1_700_000_000_123


def rows(*records: Record) -> list[TailRow]:
    """The rows of records of partition 3."""
    batches = [(P3, decoded.batch) for decoded in decode(record_batch(records), RequestedOffsets(start=0))]
    return [row for chunk in rows_of(batches) for row in chunk]


def as_read(row: TailRow) -> Any:
    """The parsed JSON of a row, which is one line of ASCII."""
    text = as_json(row)
    assert text.isascii()
    assert "\n" not in text
    return json.loads(text)


def test_a_record_is_one_object() -> None:
    headers = ((b"same", b"1"), (b"same", None), ("gr\u00fc\u00df".encode(), b"\xff"))
    [row] = rows(Record(offset=7, timestamp=MS, key=b"\x00\xff", value="caf\u00e9".encode(), headers=headers))
    assert list(as_read(row)) == ["partition", "offset", "timestamp", "key", "value", "headers"]
    assert as_read(row) == {
        "partition": 3,
        "offset": 7,
        "timestamp": "2023-11-14T22:13:20.123Z",
        "key": {"base64": "AP8="},
        "value": "caf\u00e9",
        "headers": [
            {"key": "same", "value": "1"},
            {"key": "same", "value": None},
            {"key": "gr\u00fc\u00df", "value": {"base64": "/w=="}},
        ],
    }


def test_null_is_not_empty() -> None:
    null, empty = rows(Record(offset=0, key=None, value=None), Record(offset=1, key=b"", value=b""))
    assert (as_read(null)["key"], as_read(null)["value"]) == (None, None)
    assert (as_read(empty)["key"], as_read(empty)["value"]) == ("", "")


@pytest.mark.parametrize(
    ("ms", "time"),
    [
        (-1, None),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1500, "1969-12-31T23:59:58.500Z"),
        (2**62, 2**62),
        (-(2**62), -(2**62)),
    ],
)
def test_a_time_beyond_the_calendar_stays_a_number(ms: int, time: str | int | None) -> None:
    [row] = rows(Record(timestamp=ms))
    assert as_read(row)["timestamp"] == time


def test_messages_of_0_7_have_two_more_fields() -> None:
    data = message_set([b"a", b"b"], codec=1)
    batches = [(OLD_PARTITION, decoded.batch) for decoded in decode_v07(data, base=40)]
    [[first, second]] = rows_of(batches)
    assert as_read(second) == {
        "broker": 1,
        "partition": 0,
        "offset": 40,
        "inner": 1,
        "timestamp": None,
        "key": None,
        "value": "b",
        "headers": [],
    }
    assert click.unstyle(as_line(first)) == "1-0\t40\t-\t-\ta"


# fault X05
def test_a_record_is_one_line_without_control_characters() -> None:
    [row] = rows(
        Record(
            offset=7,
            timestamp=MS,
            key=b"\x1b[31m\x9b",
            value="tab\tline\n\u202eend".encode(),
            headers=((b"h\r", b"v"),),
        )
    )
    line = click.unstyle(as_line(row))
    assert line == "3\t7\t2023-11-14T22:13:20.123Z\tbase64:G1szMW2b\ttab\\tline\\n\\u202eend\th\\r=v"


@pytest.mark.parametrize(("max_rows", "count"), [(None, 2500), (1, 1), (1000, 1000), (1001, 1001), (9999, 2500)])
def test_no_more_rows_are_printed_than_the_maximum(max_rows: int | None, count: int) -> None:
    decoded = decode(record_batch([Record(offset=offset) for offset in range(2500)]), RequestedOffsets(start=0))
    chunks = list(first_rows(rows_of((P3, decoded_batch.batch) for decoded_batch in decoded), max_rows))
    assert [row.offset for chunk in chunks for row in chunk] == list(range(count))
