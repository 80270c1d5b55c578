"""Shared by the tests of 0.7: rows as plain tuples, and segments of the genuine broker."""

import json
from pathlib import Path
from typing import Any

from kafka_io.compression import BytesLike
from kafka_io.records.decoded_batch import DEFAULT_LIMITS, DecodeLimits
from kafka_io.records.v07.decoder import decode_v07
from kafka_io.records.v07.message_set import whole_bytes

Row = tuple[int, int, bytes]

GOLDEN = Path(__file__).parents[2] / "golden" / "v07"
LOGS = sorted(path.name for path in (GOLDEN / "segments").iterdir())


def log_bytes(name: str) -> bytes:
    """A partition's whole log; its first segment starts at 0."""
    return b"".join(path.read_bytes() for path in sorted((GOLDEN / "segments" / name).glob("*.kafka")))


def expected(name: str) -> list[dict[str, Any]]:
    """The messages that the genuine iterator read from that log."""
    messages: list[dict[str, Any]] = json.loads((GOLDEN / "expected" / f"{name}.json").read_text())["messages"]
    return messages


def decoded_rows(data: BytesLike, *, base: int = 0, limits: DecodeLimits = DEFAULT_LIMITS) -> list[Row]:
    """All rows of whole messages."""
    rows: list[Row] = []
    for decoded in decode_v07(data, base=base, limits=limits):
        decoded.batch.validate(full=True)
        rows += zip(*(column.to_pylist() for column in decoded.batch.columns), strict=True)
    return rows


def read_rows(data: bytes, *, base: int = 0, limits: DecodeLimits = DEFAULT_LIMITS) -> list[Row]:
    """All rows of a fetch answer, as a reader takes them: the cut tail is left."""
    return decoded_rows(data[: whole_bytes(data, base=base)], base=base, limits=limits)
