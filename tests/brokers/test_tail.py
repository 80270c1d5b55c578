"""`penstock tail` prints the same records of a real broker that a stock consumer reads."""

import json
import uuid
from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Message, TopicPartition

from pipelines.cli.main import main
from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES

pytestmark = pytest.mark.brokers

NOON_MS = 1_769_860_800_000
NOON = "2026-01-31T12:00:00.000"
Record = tuple[int | None, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture
def topic() -> str:
    return f"tail-{uuid.uuid4().hex[:8]}"


def tail(broker: RealBroker, folder: Path, topic: str, *arguments: str) -> list[Any]:
    """The records that `penstock tail --json` prints."""
    file = folder / "penstock.toml"
    file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{broker.bootstrap}"\n')
    completed = CliRunner().invoke(main, ["--settings", str(file), "tail", topic, "--json", *arguments])
    assert completed.exit_code == 0, completed.output
    return [json.loads(line) for line in completed.stdout.splitlines()]


def data(printed: str | dict[str, str] | None) -> bytes | None:
    """The bytes of a printed key or value."""
    if printed is None:
        return None
    return printed.encode() if isinstance(printed, str) else b64decode(printed["base64"])


def record(printed: Any) -> Record:
    """The record of a printed line."""
    ms = round(datetime.fromisoformat(printed["timestamp"]).timestamp() * 1000)
    headers = [(header["key"], data(header["value"])) for header in printed["headers"]]
    return printed["offset"], ms, data(printed["key"]), data(printed["value"]), headers


def read_by_librdkafka(broker: RealBroker, topic: str, count: int) -> list[Record]:
    """The records of partition 0, as librdkafka reads them."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, timeout=60)
        return [_record(message) for message in messages]
    finally:
        consumer.close()


def _record(message: Message) -> Record:
    headers: Any = message.headers() or []
    return message.offset(), message.timestamp()[1], message.key(), message.value(), headers


def produce(broker: RealBroker, topic: str, *, codec: str, first: int, count: int) -> None:
    """Produce records one second apart, from noon on, with nulls, headers, and bytes that are not UTF-8."""
    numbers = range(first, first + count)
    broker.produce(
        topic,
        [
            (
                (None, b"", b"key %d" % number, b"\xff\xfe")[number % 4],
                (b"value " * number, None, b"\x80" * 100)[number % 3],
            )
            for number in numbers
        ],
        codec=codec,
        details=[
            {
                "headers": [("same", b"1"), ("same", None), ("bytes", b"\xff")] if number % 5 == 0 else [],
                "timestamp": NOON_MS + 1000 * number,
            }
            for number in numbers
        ],
    )


@pytest.mark.parametrize("version", ["3.9.1"])
def test_tail_prints_the_records_that_librdkafka_reads_and_begins_exactly_at_a_time(
    version: str, brokers: Callable[[str], RealBroker], topic: str, tmp_path: Path
) -> None:
    broker = brokers(version)
    codecs = RELEASES[broker.version].codecs
    broker.create_topic(topic, 2)
    for number, codec in enumerate(codecs):
        produce(broker, topic, codec=codec, first=20 * number, count=20)
    count = 20 * len(codecs)
    printed = tail(broker, tmp_path, topic, "--from", "earliest", "--until", "latest")
    assert {line["partition"] for line in printed} == {0}
    assert [record(line) for line in printed] == read_by_librdkafka(broker, topic, count)
    since = tail(broker, tmp_path, topic, "--from", f"{NOON[:-6]}33Z", "--until", "latest")
    assert [line["offset"] for line in since] == list(range(33, count))
    between = tail(broker, tmp_path, topic, "--from", f"{NOON[:-6]}32.001", "--until", f"{NOON[:-6]}40")
    assert [line["offset"] for line in between] == list(range(33, 40))
    assert tail(broker, tmp_path, topic, "--from", "2027-01-01", "--until", "latest") == []


@pytest.mark.parametrize("version", ["0.8.2.2", "0.10.2.2"])
def test_a_start_time_skips_no_record_of_an_old_broker(
    version: str, brokers: Callable[[str], RealBroker], topic: str, tmp_path: Path
) -> None:
    broker = brokers(version)
    broker.create_topic(topic)
    broker.produce(topic, [(b"key", b"%d" % number) for number in range(100)], codec="gzip")
    printed = tail(broker, tmp_path, topic, "--from", "-1h", "--until", "latest")
    assert [(line["offset"], line["value"]) for line in printed] == [(number, str(number)) for number in range(100)]
    assert tail(broker, tmp_path, topic, "--from", "2999-01-01", "--until", "latest") == []
