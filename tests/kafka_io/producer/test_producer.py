"""In every generation a confirmed message is stored, and a message that is not confirmed is reported."""

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.errors import (
    BrokerError,
    Corrupt,
    KafkaIOError,
    LeaderMoved,
    NodeMalformed,
    RegistryError,
    Unsupported,
)
from kafka_io.messages.produce import ProduceRequest
from kafka_io.model import BrokerPartition, Generation
from kafka_io.producer.encoder import TextEncoder
from kafka_io.producer.message import Delivered, Message, Undelivered
from kafka_io.producer.opening import open_producer
from kafka_io.producer.settings import ProducerSettings, Queueing
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.wire.schema import Request
from tests.kafka_io.producer.conftest import SETTINGS, SHORT_RETRIES, TOPIC, WAIT_S, OpenWorld, World, numbered

HURRIED = Queueing(queue_time_ms=5, batch_size=20)
OLD_CODECS = ("none", "gzip", "snappy")


def first_of(world: World) -> BrokerPartition:
    return BrokerPartition(0 if world.generation is Generation.V07 else None, 0)


def test_a_message_of_a_synchronous_producer_is_stored(world: World) -> None:
    with open_producer(**world.address, settings=SETTINGS) as producer:
        sent = producer.send(TOPIC, b"one", partition=first_of(world))
    assert sent == Delivered(
        topic=TOPIC, partition=first_of(world), offset=None if world.generation is Generation.V07 else 0
    )
    assert world.values() == [b"one"]


@pytest.mark.parametrize("codec", CODEC_NUMBERS)
def test_messages_of_every_codec_of_the_generation_are_read_in_order(world: World, codec: str) -> None:
    known = world.generation is Generation.MODERN or codec in OLD_CODECS
    known = known or (world.generation is Generation.V08 and codec == "lz4")
    messages = [Message(topic=TOPIC, value=value, partition=first_of(world)) for value in numbered(50)]
    with open_producer(**world.address, settings=replace(SETTINGS, compression=codec, batch_bytes=20)) as producer:
        if known:
            producer.send_many(messages)
        else:
            with pytest.raises(Undelivered) as raised:
                producer.send_many(messages)
            assert {type(failure.error) for failure in raised.value.failures} == {Unsupported}
            assert [failure.message for failure in raised.value.failures] == messages
    if known:
        assert world.values() == numbered(50)


def test_only_named_topics_are_compressed(modern: World) -> None:
    settings = replace(SETTINGS, compression="gzip", compressed_topics=frozenset({"views"}))
    long = b"x" * 10_000
    with open_producer(**modern.address, settings=settings) as producer:
        producer.send_many([Message(topic=topic, value=long, partition=0) for topic in ("clicks", "views")])
    sizes = {
        path.parent.name: path.stat().st_size
        for path in modern.server.config.data_dir.rglob("*.log")
        if path.stat().st_size
    }
    assert sizes["clicks-0"] > 10_000
    assert sizes["views-0"] < 1000


def test_a_key_chooses_the_partition_and_is_stored_with_its_value(world: World) -> None:
    messages = [Message(topic=TOPIC, value=b"%d" % n, key=b"key-%d" % (n % 5)) for n in range(40)]
    with open_producer(**world.address, settings=SETTINGS) as producer:
        producer.send_many(messages)
        world.rows()  # in 0.7 the topic is registered by now, with all its partitions
        sent = [producer.send_many([message])[0].partition for message in messages]
    partition_of_key = {(message.key, partition) for message, partition in zip(messages[20:], sent[20:], strict=True)}
    assert len(partition_of_key) == 5
    if world.generation is not Generation.V07:
        assert {(row["key"], row["partition"]) for row in world.rows()} == partition_of_key


def test_asynchronous_messages_are_confirmed_by_futures(world: World) -> None:
    with open_producer(**world.address, settings=SETTINGS, queue=HURRIED) as producer:
        futures = [producer.send(TOPIC, value, partition=first_of(world)) for value in numbered(100)]
        producer.flush(timeout_s=WAIT_S)
        assert all(future.done() for future in futures)
    assert world.values() == numbered(100)


def test_leaving_the_block_sends_the_messages_that_linger(world: World) -> None:
    with open_producer(**world.address, settings=SETTINGS, queue=Queueing(queue_time_ms=60_000)) as producer:
        future = producer.send(TOPIC, b"one")
    assert future.result(WAIT_S).topic == TOPIC
    assert world.values() == [b"one"]


def test_without_acknowledgement_all_messages_arrive(world: World) -> None:
    # The partitions are listed before each message, so that requests with and without an answer alternate.
    with open_producer(**world.address, settings=replace(SETTINGS, acks=0, metadata_max_age_ms=0)) as producer:
        assert [producer.send(TOPIC, value, partition=first_of(world)).offset for value in numbered(20)] == [None] * 20
    while not ready(world, 20):
        pass
    assert world.values() == numbered(20)


def test_closing_waits_until_the_broker_has_processed_requests_without_an_answer(modern: World) -> None:
    with open_producer(**modern.address, settings=replace(SETTINGS, acks=0)) as producer:
        producer.send_many([Message(topic=TOPIC, value=value) for value in numbered(20)])
    assert modern.values() == numbered(20)


def ready(world: World, count: int) -> bool:
    with open_producer(**world.address, settings=replace(SETTINGS, acks=1)) as producer:
        producer.send("other", b"")
    return len(world.values()) == count


@pytest.mark.parametrize("acks", [1, "all"])
def test_headers_and_timestamps_are_stored(modern: World, acks: Literal[1, "all"]) -> None:
    settings = replace(SETTINGS, acks=acks, encoder=TextEncoder(), key_encoder=TextEncoder())
    with open_producer(**modern.address, settings=settings) as producer:
        producer.send(TOPIC, "one", key="k", headers=(("a", b"1"), ("a", None)), timestamp_ms=1_700_000_000_000)
        producer.send(TOPIC, None, key="k")
    first, second = modern.rows()
    assert (first["key"], first["value"], first["headers"]) == (
        b"k",
        b"one",
        [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
    )
    assert first["timestamp"].timestamp() == 1_700_000_000
    assert (second["value"], second["offset"]) == (None, 1)


@pytest.mark.parametrize(
    "message",
    [
        Message(topic=TOPIC, value=b"x", headers=(("a", b"1"),)),
        Message(topic=TOPIC, value=b"x", timestamp_ms=1),
    ],
)
@pytest.mark.parametrize("generation", [pytest.param(Generation.V07, marks=pytest.mark.zookeeper), Generation.V08])
def test_headers_and_timestamps_that_a_generation_cannot_store_are_refused(
    open_world: OpenWorld, generation: Generation, message: Message
) -> None:
    with (
        open_producer(**open_world(generation).address, settings=SETTINGS) as producer,
        pytest.raises(Undelivered) as raised,
    ):
        producer.send_many([message])
    assert [type(failure.error) for failure in raised.value.failures] == [Unsupported]


def test_an_error_is_the_outcome_of_only_the_messages_that_it_concerns(world: World) -> None:
    large = b"x" * 1_500_000
    messages = [
        Message(topic=topic, value=value, partition=first_of(world))
        for topic, value in [(TOPIC, b"one"), ("a/b", b"no"), (TOPIC, large), (TOPIC, b"two")]
    ]
    with open_producer(**world.address, settings=SETTINGS) as producer, pytest.raises(Undelivered) as raised:
        producer.send_many(messages)
    assert [failure.message for failure in raised.value.failures] == messages[1:3]
    assert isinstance(raised.value.failures[0].error, NodeMalformed)
    assert world.values() == [b"one", b"two"]


def test_a_topic_that_is_no_text_fails_only_its_message(modern: World) -> None:
    messages = [Message(topic=TOPIC, value=b"one"), Message(topic=7, value=b"no")]  # type: ignore[arg-type]  # the error
    with open_producer(**modern.address, settings=SETTINGS) as producer, pytest.raises(Undelivered) as raised:
        producer.send_many(messages)
    assert [failure.message for failure in raised.value.failures] == messages[1:]
    assert modern.values() == [b"one"]


@pytest.mark.parametrize("max_request_bytes", [1, 250, 1_000_000])
def test_requests_are_not_larger_than_max_request_bytes(
    modern: World, monkeypatch: pytest.MonkeyPatch, max_request_bytes: int
) -> None:
    sizes: list[int] = []
    original = ModernBrokerConnection.request

    def request(connection: ModernBrokerConnection, sent: Request[object], *, max_version: int | None = None) -> object:
        if isinstance(sent, ProduceRequest):
            sizes.append(sum(len(topic.partition_data) for topic in sent.topic_data))
        return original(connection, sent, max_version=max_version)

    monkeypatch.setattr(ModernBrokerConnection, "request", request)
    settings = replace(SETTINGS, batch_bytes=200, max_request_bytes=max_request_bytes)
    messages = [Message(topic=TOPIC, value=b"%099d" % number, partition=number % 2) for number in range(8)]
    with open_producer(**modern.address, settings=settings) as producer:
        producer.send_many(messages)
    assert sizes == ([2, 2] if max_request_bytes == 1_000_000 else [1] * 4)
    assert modern.values() == [message.value for message in messages[::2]] + [
        message.value for message in messages[1::2]
    ]


def test_an_index_out_of_range_from_a_partitioner_is_an_error(modern: World) -> None:
    class OutOfRange:
        def choose(self, topic: str, key: bytes | None, count: int) -> int:  # noqa: ARG002 - whatever they are
            """An index after the last partition."""
            return count

    with (
        open_producer(**modern.address, settings=replace(SETTINGS, partitioner=OutOfRange())) as producer,
        pytest.raises(IndexError, match="2 of 2 partitions"),
    ):
        producer.send(TOPIC, b"one")


def test_a_partition_that_does_not_exist_is_an_error(modern: World) -> None:
    with open_producer(**modern.address, settings=SETTINGS) as producer:
        producer.send(TOPIC, b"one", partition=1)
        with pytest.raises(LeaderMoved, match="does not know this partition"):
            producer.send(TOPIC, b"two", partition=2)
    assert modern.values() == [b"one"]


@pytest.mark.parametrize("lost", [1, 2])
def test_a_batch_that_is_sent_again_is_stored_once(
    modern: World, lose_answers: list[type[Request[object]]], lost: int
) -> None:
    with open_producer(**modern.address, settings=SETTINGS) as producer:
        producer.send(TOPIC, b"first", partition=0)
        lose_answers += [ProduceRequest] * lost
        assert producer.send(TOPIC, b"second", partition=0).offset == 1
        assert producer.send(TOPIC, b"third", partition=0).offset == 2
    assert modern.values() == [b"first", b"second", b"third"]
    assert not lose_answers


def test_without_sequence_numbers_a_batch_that_is_sent_again_is_stored_twice(
    modern: World, lose_answers: list[type[Request[object]]]
) -> None:
    with open_producer(**modern.address, settings=replace(SETTINGS, idempotent=False)) as producer:
        lose_answers.append(ProduceRequest)
        producer.send(TOPIC, b"one", partition=0)
    assert modern.values() == [b"one", b"one"]


def test_after_a_failed_batch_the_next_one_is_sent(modern: World, lose_answers: list[type[Request[object]]]) -> None:
    with open_producer(**modern.address, settings=SETTINGS) as producer:
        lose_answers += [ProduceRequest] * SHORT_RETRIES.backoff.attempts
        with pytest.raises(KafkaIOError, match="the answer was lost"):
            producer.send(TOPIC, b"maybe", partition=0)
        assert producer.send(TOPIC, b"surely", partition=0).offset == 1
    assert modern.values() == [b"maybe", b"surely"]


NOT_LEADER, OUT_OF_ORDER, DUPLICATE = 6, 45, 46


def test_a_batch_that_the_broker_has_already_stored_is_delivered_without_an_offset(
    modern: World, produce_codes: list[int]
) -> None:
    with open_producer(**modern.address, settings=SETTINGS) as producer:
        produce_codes.append(DUPLICATE)
        assert producer.send(TOPIC, b"one", partition=0).offset is None


# fault B01
def test_a_leader_that_moved_is_looked_up_again(modern: World, produce_codes: list[int]) -> None:
    with open_producer(**modern.address, settings=SETTINGS) as producer:
        produce_codes += [NOT_LEADER, NOT_LEADER]
        assert producer.send(TOPIC, b"one", partition=0).offset == 0
    assert modern.values() == [b"one"]


@pytest.mark.parametrize(("code", "error"), [(OUT_OF_ORDER, BrokerError), (-1, Corrupt)])
def test_after_an_invalid_answer_the_producer_continues_with_a_new_id(
    modern: World, produce_codes: list[int], code: int, error: type[KafkaIOError]
) -> None:
    with open_producer(**modern.address, settings=SETTINGS) as producer:
        producer.send(TOPIC, b"one", partition=0)
        produce_codes.append(code)
        with pytest.raises(error):
            producer.send(TOPIC, b"refused", partition=0)
        assert producer.send(TOPIC, b"two", partition=0).offset == 1
    assert modern.values() == [b"one", b"two"]


@pytest.mark.slow
def test_messages_that_are_confirmed_while_the_broker_restarts_are_stored(world: World) -> None:
    futures: dict[bytes, Future[Delivered]] = {}
    failed: list[bytes] = []
    with open_producer(**world.address, settings=SETTINGS, queue=HURRIED) as producer:
        for round_ in range(3):
            for value in numbered(100, first=100 * round_):
                futures[value] = producer.send(TOPIC, value, partition=first_of(world))
            if round_ == 1:
                world.stop()
            try:
                producer.flush(timeout_s=WAIT_S)
            except Undelivered as error:
                failed += [failure.message.value for failure in error.failures]
            if round_ == 1:
                world.restart()
    confirmed = [value for value, future in futures.items() if not future.exception(WAIT_S)]
    assert sorted(failed) == sorted(futures.keys() - set(confirmed))
    stored = world.values()
    assert set(confirmed) <= set(stored)
    if world.generation is Generation.MODERN:
        assert len(stored) == len(set(stored))
    assert set(numbered(100)) | set(numbered(100, first=200)) <= set(confirmed)


def test_closing_without_a_broker_returns_every_message_as_failed(world: World) -> None:
    producer = open_producer(**world.address, settings=SETTINGS, queue=Queueing(queue_time_ms=0, batch_size=10))
    producer.send(TOPIC, b"confirmed").result(WAIT_S)
    world.stop()
    futures = [producer.send(TOPIC, value, partition=first_of(world)) for value in numbered(50)]
    with pytest.raises(Undelivered) as raised:
        producer.close(timeout_s=0.3)
    assert [failure.message.value for failure in raised.value.failures] == numbered(50)
    assert all(future.exception(WAIT_S) for future in futures)


def test_failed_messages_do_not_hide_an_error_in_the_block(modern: World) -> None:
    modern.stop()

    def act() -> None:
        with open_producer(**modern.address, settings=SETTINGS, queue=HURRIED) as producer:
            producer.send(TOPIC, b"one")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        act()
    assert "1 messages were not confirmed" in raised.value.__notes__[0]


def test_librdkafka_reads_the_messages_of_this_producer(modern: World) -> None:
    messages = [Message(topic=TOPIC, value=value, key=value, partition=0) for value in numbered(30)]
    with open_producer(**modern.address, settings=replace(SETTINGS, compression="zstd")) as producer:
        producer.send_many(messages)
    consumer = Consumer({"bootstrap.servers": modern.address["bootstrap"], "group.id": "readers"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    try:
        records = consumer.consume(30, WAIT_S)
    finally:
        consumer.close()
    assert [(record.key(), record.value()) for record in records] == [(value, value) for value in numbered(30)]


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": 2},
        {"compression": "lzma"},
        {"batch_bytes": 0},
        {"batch_bytes": 2_000_000},
        {"transactional_id": "t", "acks": 1},
        {"transactional_id": "t", "idempotent": False},
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"acks|batch_bytes"):
        ProducerSettings(**settings)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("settings", [{"batch_size": 0}, {"queue_time_ms": -1}, {"when_full": "wait"}])
def test_an_invalid_queueing_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"queue|when_full"):
        Queueing(**settings)  # type: ignore[arg-type]  # that is the point


@pytest.mark.zookeeper
@pytest.mark.parametrize("generation", [Generation.V08, Generation.MODERN])
def test_brokers_are_found_through_zookeeper(chroot: str, tmp_path: Path, generation: Generation) -> None:
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "data", generation=generation)
    with (
        ModernBrokerServer(config, zookeeper=chroot),
        open_producer(zookeeper=chroot, settings=SETTINGS) as producer,
    ):
        assert producer.send(TOPIC, b"one").offset == 0
    with pytest.raises(RegistryError, match="no broker is registered"):
        open_producer(zookeeper=chroot, generation=generation)


def test_a_cluster_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="give the address of ZooKeeper"):
        open_producer()
