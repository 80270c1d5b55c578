"""Shared by the tests of message formats 0 to 2: rows as plain tuples, and bytes that other clients wrote."""

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_io.compression import BytesLike
from kafka_io.records.crc32c import crc32c
from kafka_io.records.decoded_batch import DEFAULT_LIMITS, DecodedBatch, DecodeLimits
from kafka_io.records.decoder import decode
from kafka_io.records.layout import ENTRY_BYTES, MAGIC_AT
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.schema import COLUMNS
from tests.oracles import logs

Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

GOLDEN = Path(__file__).parents[2] / "golden" / "modern"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
NAMES = sorted(EXPECTED["files"])
EVERYTHING = RequestedOffsets(start=0)


def golden(name: str) -> bytes:
    """The entries that another client wrote."""
    return (GOLDEN / f"{name}.bin").read_bytes()


def given(name: str) -> list[Row]:
    """The rows that the other client was given to write, as far as its format can hold them."""
    magic = EXPECTED["files"][name]["magic"]
    return [
        (
            row["offset"],
            row["timestamp"] if magic else -1,
            0 if magic else -1,
            _bytes(row["key"]),
            _bytes(row["value"]),
            [(key, _bytes(value)) for key, value in row["headers"]] if magic == 2 else [],
        )
        for row in EXPECTED["rows"]
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """A batch of all columns, row by row."""
    batch.validate(full=True)
    offset, timestamp, kind, key, value, headers = batch.columns
    lists = [[(header["key"], header["value"]) for header in row] for row in headers.to_pylist()]
    columns = (offset, timestamp.cast(pa.int64()), kind, key, value)
    return list(zip(*(column.to_pylist() for column in columns), lists, strict=True))


def read(
    data: BytesLike, requested: RequestedOffsets = EVERYTHING, *, limits: DecodeLimits = DEFAULT_LIMITS, **more: Any
) -> list[DecodedBatch]:
    """All batches; that every offset is a row or a gap is checked on the way."""
    batches = []
    start = requested.start
    for decoded in decode(data, requested, limits=limits, **more):
        batches.append(decoded)
        assert decoded.next_offset > start
        assert decoded.batch.num_rows + sum(decoded.gaps.values()) == decoded.next_offset - start
        assert min(decoded.gaps.values(), default=1) > 0
        start = decoded.next_offset
    return batches


def read_rows(
    data: BytesLike, requested: RequestedOffsets = EVERYTHING, *, limits: DecodeLimits = DEFAULT_LIMITS, **more: Any
) -> list[Row]:
    """All rows."""
    rows = [row for decoded in read(data, requested, limits=limits, **more) for row in rows_of(decoded.batch)]
    offsets = [row[0] for row in rows]
    assert offsets == sorted(set(offsets))
    assert all(requested.start <= offset < requested.stop for offset in offsets)
    return rows


def oracle_rows(data: bytes) -> list[Row]:
    """The rows that the oracle reads, with header keys as text."""
    return [(*row[:5], [(_text(key), value) for key, value in row[5]]) for row in logs.decode(data)]


def _text(key: bytes) -> str:
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return "\ufffd" + key.hex()
    return "\ufffd" + key.hex() if text.startswith("\ufffd") else text


def one_column(data: BytesLike, columns: Sequence[str] = COLUMNS) -> pa.RecordBatch:
    """The only batch of `data`, with these columns."""
    (decoded,) = decode(data, EVERYTHING, columns=columns)
    return decoded.batch


def repaired(data: bytes | bytearray) -> bytes:
    """`data` with the right CRC in each whole entry, so that what was changed gets past it."""
    out = bytearray(data)
    position = 0
    while len(out) - position > MAGIC_AT:
        end = position + ENTRY_BYTES + int.from_bytes(out[position + 8 : position + 12], "big", signed=True)
        if not position + 26 <= end <= len(out):
            break
        if out[position + MAGIC_AT] == 2:
            out[position + 17 : position + 21] = crc32c(out[position + 21 : end]).to_bytes(4, "big")
        else:
            out[position + 12 : position + 16] = zlib.crc32(out[position + 16 : end]).to_bytes(4, "big")
        position = end
    return bytes(out)


def changed(data: bytes, position: int, new: bytes) -> bytes:
    """`data` with `new` at `at`, and right checksums."""
    return repaired(data[:position] + new + data[position + len(new) :])


def batch_around(content: bytes, *, count: int, last_delta: int, codec: int = 0) -> bytes:
    """A record batch from offset 0 on that says so much about its content."""
    body = struct.pack(">hiqqqhii", codec, last_delta, 0, 0, -1, -1, -1, count) + content
    return repaired(struct.pack(">qiiBI", 0, 9 + len(body), 0, 2, 0) + body)
