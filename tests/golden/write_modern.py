"""Writes the files of tests/golden/modern: entries of a log, written by clients that share no code with Penstock.

    python -m tests.golden.write_modern

Each `<name>.bin` has the records of a fetch answer. `expected.json` has the client that wrote each file, and the
records that all clients wrote, with key and value in hexadecimal. Format 0 has no timestamps, and only format 2
has headers.

kafka-python and aiokafka do not write the offset of a compressed message, because a broker sets it; here this script
sets it. librdkafka writes to its own mock cluster, and a Fetch request built by hand reads the batches back.
kafka-python needs the package xxhash for its old lz4 format.
"""

import json
import socket
import struct
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBatch
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaMessages
from confluent_kafka import Producer
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBatch
from kafka.record.legacy_records import LegacyRecordBatchBuilder as KafkaPythonMessages

FOLDER = Path(__file__).parent / "modern"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Given = tuple[int, bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]

# timestamp, key, value, headers
GIVEN: list[Given] = [
    (1_700_000_000_000, b"key", b"value", [("trace", b"abc"), ("trace", b""), ("none", None)]),
    (1_700_000_000_007, None, b"no key", []),
    (1_699_999_999_999, b"", b"", [("", b"empty name")]),
    (1_700_000_000_001, b"tombstone", None, []),
    (1_700_000_000_002, b"\xff\x00", bytes(range(256)), [("\u00e4\u00f6\u00fc", b"\x00")]),
    *((1_700_000_001_000 + number, b"%d" % number, b'{"number": %d}' % number * 3, []) for number in range(15)),
]


def batch(builder: Any, codec: int, **more: int) -> bytes:
    """A record batch with the records of GIVEN."""
    batch_builder = builder(magic=2, compression_type=codec, is_transactional=0, batch_size=1 << 20, **more)
    for offset, (timestamp, key, value, headers) in enumerate(GIVEN):
        batch_builder.append(offset, timestamp, key, value, headers)
    return bytes(batch_builder.build())


def messages(builder: Any, magic: int, codec: int) -> bytes:
    """The records of GIVEN as messages of format 0 or 1, without headers."""
    set_builder = builder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for offset, (timestamp, key, value, _) in enumerate(GIVEN):
        set_builder.append(offset, timestamp, key, value)
    data = bytes(set_builder.build())
    return struct.pack(">q", len(GIVEN) - 1) + data[8:] if codec else data


def librdkafka(codec: str) -> bytes:
    """The record batches that the mock cluster of librdkafka stores for GIVEN."""
    producer = Producer({"test.mock.num.brokers": 1, "compression.type": codec, "linger.ms": 200})
    for timestamp, key, value, headers in GIVEN:
        producer.produce("golden", key=key, value=value, timestamp=timestamp, partition=0, headers=headers)
    producer.flush()
    (broker,) = producer.list_topics().brokers.values()
    entries, offset = b"", 0
    with socket.create_connection((broker.host, broker.port), timeout=10) as connection:
        while offset < len(GIVEN):
            fetched = fetch(connection, offset)
            entries += fetched
            offset = struct.unpack_from(">q", fetched)[0] + struct.unpack_from(">i", fetched, 23)[0] + 1
    return entries


def fetch(connection: socket.socket, offset: int) -> bytes:
    """Send a Fetch v4 request; returns the records of the answer."""
    topic = struct.pack(">ih6siiqi", 1, 6, b"golden", 1, 0, offset, 1 << 20)
    body = struct.pack(">hhih4siiiib", 1, 4, 7, 4, b"test", -1, 1000, 1, 1 << 20, 0) + topic
    connection.sendall(struct.pack(">i", len(body)) + body)
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    answer = connection.recv(size, socket.MSG_WAITALL)
    # correlation id | throttle | 1 topic | name | 1 partition | id | error | high watermark | last stable offset
    position = 4 + 4 + 4 + 2 + 6 + 4 + 4 + 2 + 8 + 8
    (aborted,) = struct.unpack_from(">i", answer, position)
    position += 4 + 16 * max(aborted, 0)
    (records,) = struct.unpack_from(">i", answer, position)
    return answer[position + 4 : position + 4 + records]


def rows() -> list[dict[str, Any]]:
    """The rows that a reader of any of these files must get."""
    return [
        {
            "offset": offset,
            "timestamp": timestamp,
            "key": None if key is None else key.hex(),
            "value": None if value is None else value.hex(),
            "headers": [[name, content.hex() if isinstance(content, bytes) else None] for name, content in headers],
        }
        for offset, (timestamp, key, value, headers) in enumerate(GIVEN)
    ]


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    files = {}
    fields = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    for number, codec in enumerate(CODECS):
        cases = {
            f"v2-{codec}-kafka-python": (batch(KafkaPythonBatch, number, **fields), "kafka-python", 2),
            f"v2-{codec}-aiokafka": (batch(AiokafkaBatch, number, **fields), "aiokafka", 2),
            f"v2-{codec}-librdkafka": (librdkafka(codec), "confluent-kafka", 2),
        }
        for magic in (0, 1):
            if codec != "zstd":
                data = messages(KafkaPythonMessages, magic, number)
                cases[f"v{magic}-{codec}-kafka-python"] = (data, "kafka-python", magic)
            if codec not in {"zstd", "lz4"}:
                data = messages(AiokafkaMessages, magic, number)
                cases[f"v{magic}-{codec}-aiokafka"] = (data, "aiokafka", magic)
        for name, (data, writer, magic) in cases.items():
            (FOLDER / f"{name}.bin").write_bytes(data)
            files[name] = {"writer": f"{writer} {version(writer)}", "magic": magic}
    (FOLDER / "expected.json").write_text(json.dumps({"files": files, "rows": rows()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
