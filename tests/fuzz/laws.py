"""The laws that hold for any input: decoding gives the rows that an oracle reads, or a typed error with its offset."""

import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kafka_io.errors import KafkaIOError, TooLarge, Where
from kafka_io.records.decoded_batch import DecodedBatch, DecodeLimits
from kafka_io.records.decoder import decode
from kafka_io.records.header_scan import scan_headers
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.records.schema import SCHEMA
from kafka_io.records.v07.decoder import decode_v07
from kafka_io.records.v07.message_set import whole_bytes
from tests.kafka_io.records.decoding import Row, oracle_rows, rows_of
from tests.oracles import sets_v07

CAP = 1 << 20
WHERE = Where(cluster="old", broker="7", topic="clicks", partition=3)
# No log reaches the largest int64; after that offset nothing would be read.
_EVERYTHING = RequestedOffsets(start=0, high_watermark=1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of decoding: the rows, the next offset, and the error if decoding ended with one."""

    rows: list[Any]
    next_offset: int
    error: KafkaIOError | None


def check_log(data: bytes, rng: random.Random) -> str:
    """Check the laws for a log of formats 0 to 2 and for a slice of it.

    Returns "read", or the name of the KafkaIOError that ended decoding.

    Raises:
        AssertionError: a law is broken. Any other exception means that a law is broken, too.
    """
    complete = read_log(
        data, _EVERYTHING, DecodeLimits(max_decompressed_bytes=CAP, batch_bytes=rng.choice((1, 500, CAP)))
    )
    _agree(complete, lambda: oracle_rows(data), "log")
    if complete.error is None:
        scan = scan_headers(data, _EVERYTHING)
        assert scan.next_offset == complete.next_offset
        assert scan.min_records <= len(complete.rows) <= scan.max_records
    _check_slice(data, rng, complete)
    return "read" if complete.error is None else type(complete.error).__name__


def read_log(
    data: bytes, requested: RequestedOffsets, limits: DecodeLimits, aborted: tuple[tuple[int, int], ...] = ()
) -> Reading:
    """Decode until the end or an error, and check that every offset up to there has a row or is in a gap."""
    batches = decode(data, requested, limits=limits, where=WHERE, aborted=aborted)
    rows: list[Row] = []
    start = requested.start
    step, error = _next(batches)
    while step is not None:
        assert step.batch.schema == SCHEMA
        batch_rows = rows_of(step.batch)
        assert start < step.next_offset <= requested.stop
        assert min(step.gaps.values(), default=1) > 0
        assert len(batch_rows) + sum(step.gaps.values()) == step.next_offset - start
        offsets = [row[0] for row in batch_rows]
        assert offsets == sorted(set(offsets))
        assert all(start <= offset < step.next_offset for offset in offsets)
        rows += batch_rows
        start = step.next_offset
        step, error = _next(batches)
    return Reading(rows=rows, next_offset=start, error=error)


def check_set(data: bytes, rng: random.Random) -> str:
    """Check the laws for a message set of 0.7; returns and raises the same as `check_log`."""
    base = rng.choice((0, 1 << 40))
    try:
        size = whole_bytes(data, base=base, where=WHERE)
    except KafkaIOError as error:
        _check_error(error)
        return type(error).__name__
    limits = DecodeLimits(max_decompressed_bytes=CAP, batch_bytes=rng.choice((1, 500, CAP)))
    reading = _read_set(data[:size], base, limits)
    assert reading.error is not None or reading.next_offset == base + size
    _agree(reading, lambda: sets_v07.decode(data[:size], base=base), "set")
    return "read" if reading.error is None else type(reading.error).__name__


def _read_set(data: bytes, base: int, limits: DecodeLimits) -> Reading:
    batches = decode_v07(data, base=base, limits=limits, where=WHERE)
    rows: list[Any] = []
    start = base
    step, error = _next(batches)
    while step is not None:
        step.batch.validate(full=True)
        batch_rows = list(zip(*(column.to_pylist() for column in step.batch.columns), strict=True))
        assert start < step.next_offset <= base + len(data)
        assert all(start <= row[0] < step.next_offset for row in batch_rows)
        rows += batch_rows
        start = step.next_offset
        step, error = _next(batches)
    return Reading(rows=rows, next_offset=start, error=error)


def _check_slice(data: bytes, rng: random.Random, complete: Reading) -> None:
    """Check that a slice gives exactly the rows of the complete log whose offsets are in the slice."""
    end_offset = max(complete.next_offset, 1)
    start = rng.randrange(end_offset)
    stop = start + 1 + rng.choice((0, rng.randrange(40), rng.randrange(end_offset)))
    high_watermark = rng.choice((2**63 - 1, max(complete.next_offset, start)))
    part = read_log(
        data,
        RequestedOffsets(start=start, stop=stop, high_watermark=high_watermark),
        DecodeLimits(max_decompressed_bytes=CAP),
    )
    wanted = [row for row in complete.rows if start <= row[0] < min(stop, part.next_offset)]
    assert part.rows[: len(wanted)] == wanted
    assert complete.error is not None or part.rows == wanted
    aborted = ((rng.choice((-1, 0, 7)), rng.choice((0, start))),)
    committed = read_log(data, _EVERYTHING, DecodeLimits(max_decompressed_bytes=CAP), aborted)
    assert complete.error is not None or set(map(repr, committed.rows)) <= set(map(repr, complete.rows))


def _next(batches: Iterator[DecodedBatch]) -> tuple[DecodedBatch | None, KafkaIOError | None]:
    try:
        return next(batches, None), None
    except KafkaIOError as error:
        _check_error(error)
        return None, error


def _check_error(error: KafkaIOError) -> None:
    unpickled = pickle.loads(pickle.dumps(error))
    assert (type(unpickled), str(unpickled), unpickled.where) == (type(error), str(error), error.where)
    assert error.where.offset is not None
    assert error.where == WHERE.at_offset(error.where.offset)


def _agree(reading: Reading, oracle: Callable[[], list[Any]], kind: str) -> None:
    """Check that the rows are the oracle's rows; after an error, that they are the first of the oracle's rows."""
    if isinstance(reading.error, TooLarge):
        return  # the oracle has no limits, and would take too long
    try:
        rows = oracle()
    except Exception as error:
        # The oracle does not check its input first: any exception can mean that the bytes are not a valid log.
        if reading.error is None:
            raise AssertionError(
                f"the decoder read this {kind} without an error, but the oracle raised {error!r}"
            ) from error
        return
    assert reading.rows == (rows if reading.error is None else rows[: len(reading.rows)])
