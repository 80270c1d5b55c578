"""aiokafka writes, reads in a group, resumes at its committed offsets, and uses transactions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.clients.conftest import CODECS, TOPIC, Row, address, in_order, rows

WAIT_S = 20
OFTEN = {"heartbeat_interval_ms": 100}


@asynccontextmanager
async def producing(broker: ModernBrokerServer, **settings: Any) -> AsyncIterator[Any]:
    producer = AIOKafkaProducer(bootstrap_servers=address(broker), **settings)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def consuming(broker: ModernBrokerServer, **settings: Any) -> AsyncIterator[Any]:
    defaults = {"group_id": "readers", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=address(broker), **{**defaults, **settings})
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def write(producer: Any, codec: str, count: int = 100) -> None:
    for partition, key, value in rows(codec, count):
        await producer.send(TOPIC, key=key, value=value, partition=partition)
    await producer.flush()


async def read(consumer: Any, count: int) -> list[Row]:
    rows: list[Row] = []
    while len(rows) < count:
        message = await asyncio.wait_for(consumer.getone(), WAIT_S)
        rows.append((message.partition, message.key, message.value))
    return rows


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_back(broker: ModernBrokerServer, codec: str, *, idempotent: bool) -> None:
    async def run() -> list[Row]:
        compression = None if codec == "none" else codec
        async with producing(broker, compression_type=compression, enable_idempotence=idempotent) as producer:
            await write(producer, codec)
        async with consuming(broker) as consumer:
            return await read(consumer, 100)

    assert in_order(asyncio.run(run())) == in_order(rows(codec))


def test_a_group_resumes_at_its_committed_offsets(broker: ModernBrokerServer) -> None:
    async def run() -> tuple[list[Row], list[Row]]:
        async with producing(broker) as producer:
            await write(producer, "none", 40)
            async with consuming(broker) as consumer:
                first = await read(consumer, 40)
                await consumer.commit()
            await write(producer, "gzip", 60)
            async with consuming(broker) as consumer:
                return first, await read(consumer, 60)

    first, second = asyncio.run(run())
    assert (in_order(first), in_order(second)) == (in_order(rows("none", 40)), in_order(rows("gzip", 60)))


def test_two_members_share_the_partitions(broker: ModernBrokerServer) -> None:
    async def run() -> list[int]:
        async with producing(broker) as producer:
            await write(producer, "none", 2)
        async with consuming(broker, **OFTEN) as first, consuming(broker, **OFTEN) as second:
            rows_of_members = await asyncio.gather(read(first, 1), read(second, 1))
            return sorted(row[0] for member_rows in rows_of_members for row in member_rows)

    assert asyncio.run(run()) == [0, 1]


def test_a_read_committed_consumer_gets_only_committed_records(broker: ModernBrokerServer) -> None:
    # fault R22
    async def run() -> list[Row]:
        async with producing(broker, transactional_id="t") as producer:
            for codec, commits in (("one", True), ("two", False), ("three", True)):
                await producer.begin_transaction()
                await write(producer, codec, 20)
                await (producer.commit_transaction() if commits else producer.abort_transaction())
        async with consuming(broker, isolation_level="read_committed") as consumer:
            return await read(consumer, 40)

    expected = [
        [*first, *third] for first, third in zip(in_order(rows("one", 20)), in_order(rows("three", 20)), strict=True)
    ]
    assert in_order(asyncio.run(run())) == expected
