"""Batches of decoded records, and the limits of decoding, the same for all generations."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from kafka_io.compression import BytesLike
from kafka_io.errors import TooLarge, Where

_MIB = 1024 * 1024
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """Memory limits of decoding.

    Args:
        max_decompressed_bytes: maximum size of everything compressed in one message or record batch.
        max_depth: 0.7 only: how many times a message may be compressed. Later formats allow one level.
        batch_bytes: an Arrow batch ends after the entry with which its columns reach this size.

    Raises:
        ValueError: a limit is below 1, or a batch could outgrow the 32-bit offsets of Arrow's binary columns.

    >>> DecodeLimits(max_decompressed_bytes=1024).max_depth
    16
    """

    max_decompressed_bytes: int = 256 * _MIB
    max_depth: int = 16
    batch_bytes: int = 32 * _MIB

    def __post_init__(self) -> None:
        if min(self.max_decompressed_bytes, self.max_depth, self.batch_bytes) < 1:
            raise ValueError("a limit below 1")
        if self.batch_bytes + self.max_decompressed_bytes > INT32_MAX:
            raise ValueError("batch_bytes and max_decompressed_bytes together must stay below 2 GiB")

    def check_size(self, data: BytesLike, where: Where) -> None:
        """Check that rows from `data` cannot outgrow the 32-bit offsets of Arrow's binary columns.

        Raises:
            TooLarge: they can.
        """
        if len(data) + self.batch_bytes > INT32_MAX:
            reason = f"{len(data)} bytes to decode at once: with batch_bytes they must stay below 2 GiB"
            raise TooLarge(reason, where)


DEFAULT_LIMITS = DecodeLimits()


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """Rows, and the offsets that gave no row.

    Args:
        batch: the rows.
        next_offset: the next offset to read, after the last message or batch that was decoded.
        gaps: number of offsets without a row, by cause. In 0.7 the only cause is "empty": a compressed message without
            messages. Later causes are "compacted" (a batch holds fewer records than offsets), "control" (transaction
            markers), "aborted", and "hole" (offsets that no batch has: they were compacted, or the log lost them).
        holes: from the start of the first hole to the end of the last one; None without a hole.

    >>> [decoded] = decode_v07(message_set([b"one", b"two"]), base=0)
    >>> decoded.batch.num_rows, decoded.next_offset, dict(decoded.gaps)
    (2, 26, {})
    """

    batch: pa.RecordBatch
    next_offset: int
    gaps: Mapping[str, int]
    holes: tuple[int, int] | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream of Arrow's PyCapsule interface: pyarrow, DuckDB and Polars read this object directly."""
        return self.batch.__arrow_c_stream__(requested_schema)
