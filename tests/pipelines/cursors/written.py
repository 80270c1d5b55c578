"""Writes SequenceFiles and keys of Camus as Hadoop does; no genuine samples of them were available."""

import struct
import zlib
from collections.abc import Sequence

SYNC = bytes(range(16))
ETL_KEY = "com.linkedin.camus.etl.kafka.common.EtlKey"
NULL = "org.apache.hadoop.io.NullWritable"
CODEC = "org.apache.hadoop.io.compress.DefaultCodec"


def text(value: str) -> bytes:
    """Hadoop's Text, of a length up to 127."""
    return bytes([len(value)]) + value.encode()


def utf(value: str) -> bytes:
    """Java's writeUTF."""
    return struct.pack(">H", len(value)) + value.encode()


def record(key: bytes, value: bytes = b"") -> bytes:
    """One record."""
    return struct.pack(">ii", len(key) + len(value), len(key)) + key + value


def mark() -> bytes:
    """The sync mark that can follow any record."""
    return struct.pack(">i", -1) + SYNC


def sequence_file(
    *records: bytes,
    key: str = ETL_KEY,
    value: str = NULL,
    compressed: bool = False,
    in_blocks: bool = False,
    metadata: Sequence[str] = (),
) -> bytes:
    """A whole file; `metadata` has names and values in turn."""
    return b"".join(
        (
            b"SEQ\x06",
            text(key),
            text(value),
            bytes([compressed, in_blocks]),
            text(CODEC) if compressed else b"",
            struct.pack(">i", len(metadata) // 2),
            *map(text, metadata),
            SYNC,
            *records,
        )
    )


def etl_key(topic: str, partition: int, offset: int, *, broker: str = "0", extra: bytes = b"") -> bytes:
    """A key of Camus. Unused fields follow: time, server, service, and a map in later versions."""
    numbers = struct.pack(">iqqq", partition, 0, offset, 0)
    return utf(broker) + numbers + utf(topic) + struct.pack(">q", 0) + utf("") + utf("") + extra


def camus_file(*keys: bytes) -> bytes:
    """An offset file as Hadoop writes it by default: with compressed values and uncompressed keys."""
    return sequence_file(*(record(key, zlib.compress(b"")) for key in keys), compressed=True)


def request_file(*lines: str | bytes, compressed: bool = False) -> bytes:
    """An offset file of the Hadoop consumer."""
    values = [line.encode() if isinstance(line, str) else line for line in lines]
    return sequence_file(
        *(record(bytes(20), struct.pack(">i", len(value)) + value) for value in values),
        key="kafka.etl.KafkaETLKey",
        value="org.apache.hadoop.io.BytesWritable",
        compressed=compressed,
    )
