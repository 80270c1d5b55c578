"""Each captured request gives the answer bytes, the state of the connection and the bytes on disk of a genuine broker.

The requests and answers were captured at a genuine 0.7.2 broker (tests/golden/v07). Requests that depend on the time
(offsets-time-now, offsets-time-future) are replayed at the time of their capture.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.v07.messages import ProduceRequest07
from tests.kafka_io.testing.v07.conftest import GENUINE
from tests.kafka_io.testing.v07.talk import GOLDEN, Client, golden, message

CAPTURED_AT_MS = 1795257126184
SEGMENT_TIMES = {0: 1600000000, 749: 1600003600, 1453: 1600007200, 2157: 1600010800}
# These logs have no captured segments. The captured requests create them.
ONLY_AS_REQUESTS = ("mixed-0", "nested-0", "snbig-0")


def genuine_broker(data_dir: Path) -> BrokerServer07:
    return BrokerServer07(BrokerConfig07(**GENUINE, data_dir=data_dir), clock=lambda: CAPTURED_AT_MS)


def ids(records: list[dict[str, Any]]) -> list[str]:
    return [record["id"] for record in records]


def replay(client: Client, record: dict[str, Any]) -> None:
    client.send(request_bytes(record))
    expected = bytes.fromhex(record["response_hex"] or "")
    assert client.read(len(expected)) == expected
    assert client.state() == record["connection_after"]


def request_bytes(record: dict[str, Any]) -> bytes:
    if record["request_hex"] is not None:
        return bytes.fromhex(record["request_hex"])
    # The request is too long to be stored: one message that contains only the letter z. Its first bytes are stored.
    overhead = len(ProduceRequest07(record["topic"], record["partition"], message(b"")).encode())
    payload = b"z" * (record["request_bytes"] - overhead)
    frame = ProduceRequest07(record["topic"], record["partition"], message(payload)).encode()
    assert frame.startswith(bytes.fromhex(record["request_hex_prefix"]))
    return frame


def log_bytes(data_dir: Path, name: str) -> int | None:
    segments = list((data_dir / name).glob("*.kafka"))
    return sum(path.stat().st_size for path in segments) if segments else None


@pytest.fixture(scope="module")
def produced_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory after the requests of the genuine producer."""
    data_dir = tmp_path_factory.mktemp("produced")
    with genuine_broker(data_dir) as broker, Client(broker.port) as client:
        for record in golden("genuine-produce"):
            replay(client, record)
    return data_dir


@pytest.fixture(scope="module")
def genuine_client(produced_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer07]:
    """A broker with the data directory of the genuine broker."""
    data_dir = tmp_path_factory.mktemp("genuine")
    shutil.copytree(GOLDEN / "segments", data_dir, dirs_exist_ok=True)
    for name in ONLY_AS_REQUESTS:
        shutil.copytree(produced_dir / name, data_dir / name)
    for start, modified in SEGMENT_TIMES.items():
        os.utime(data_dir / "seg-0" / f"{start:020d}.kafka", (modified, modified))
    with genuine_broker(data_dir) as broker:
        yield broker


READ_ONLY = [*golden("fetch"), *golden("multifetch"), *golden("offsets"), *golden("framing")]


@pytest.mark.parametrize("record", READ_ONLY, ids=ids(READ_ONLY))
def test_read_requests_are_answered_as_captured(genuine_client: BrokerServer07, record: dict[str, Any]) -> None:
    with Client(genuine_client.port) as client:
        if record["id"] == "byte-by-byte":
            *begin, last = request_bytes(record)
            for byte in begin:
                client.send(bytes((byte,)))
            record = {**record, "request_hex": f"{last:02x}"}
        replay(client, record)


GENUINE_LOGS = ["plain-0", "plain-1", "gz-0", "sn-0", "multi-0", "multi-1", "three-2", "seg-0", "big-0", "gzbig-0"]


@pytest.mark.parametrize("name", GENUINE_LOGS)
def test_requests_of_the_genuine_producer_give_the_segments_of_a_genuine_broker(produced_dir: Path, name: str) -> None:
    """Compares names and bytes of the segments. The topic `rand` has random partitions and is left out."""
    actual, expected = (
        {path.name: path.read_bytes() for path in (root / name).iterdir()} for root in roots(produced_dir)
    )
    assert actual == expected


def roots(produced_dir: Path) -> tuple[Path, Path]:
    return produced_dir, GOLDEN / "segments"


def test_captured_produce_requests_change_the_logs_as_captured(tmp_path: Path) -> None:
    """Each request has its own connection, because the broker closes some of them."""
    with genuine_broker(tmp_path) as broker:
        for record in golden("produce"):
            sizes = record.get("log_bytes_before_after", {})
            logs = [name for name in sizes if not name.startswith("rawrand")]
            before = [log_bytes(tmp_path, name) for name in logs]
            with Client(broker.port) as client:
                replay(client, record)
            after = [log_bytes(tmp_path, name) for name in logs]
            assert list(zip(before, after, strict=True)) == [tuple(sizes[name]) for name in logs], record["id"]
        assert {log_bytes(tmp_path, f"rawrand-{partition}") for partition in (0, 1)} == {None, 11}
    for name in ("raw-0", "raw-1", "magic0-0", "rawgz-0", "rawsn-0", "emptyset-0"):
        actual, expected = ((root / name / f"{0:020d}.kafka").read_bytes() for root in (tmp_path, GOLDEN / "segments"))
        assert actual == expected


def test_the_requests_of_an_asynchronous_genuine_producer_are_stored(tmp_path: Path) -> None:
    records = golden("genuine-async")
    with genuine_broker(tmp_path) as broker, Client(broker.port) as client:
        for record in records:
            replay(client, record)
    stored = [log_bytes(tmp_path, f"async-{partition}") or 0 for partition in (0, 1)]
    assert sum(stored) == 45 * len(records)


def test_a_log_without_its_first_segments_is_answered_as_captured(tmp_path: Path) -> None:
    """A captured answer contains the first segment. Two messages of the same size replace the last one."""
    records = golden("purged")
    first = next(
        bytes.fromhex(record["response_hex"])[6:] for record in records if record["id"] == "purged-fetch-earliest"
    )
    last = 2 * message(b"purged-message-xxx")
    for name, start, data in (("purged-0", 1456, first), ("purged-0", 2184, last), ("plain-0", 0, None)):
        path = tmp_path / name / f"{start:020d}.kafka"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((GOLDEN / "segments" / name / path.name).read_bytes() if data is None else data)
    with genuine_broker(tmp_path) as broker:
        for record in records:
            with Client(broker.port) as client:
                replay(client, record)
