"""Records and offsets of a transaction hold together, or none of them does."""

import pickle
from concurrent.futures import Future
from dataclasses import replace

import confluent_kafka
import pytest

from kafka_io.errors import NOWHERE, BrokerError, KafkaIOError, Unsupported, Where
from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_io.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafka_io.messages.produce import ProduceRequest
from kafka_io.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafka_io.model import TopicPartition
from kafka_io.producer.message import Delivered, DeliveryFailure, Message, Undelivered
from kafka_io.producer.opening import open_producer
from kafka_io.producer.settings import Queueing
from kafka_io.producer.transactions import TransactionError
from kafka_io.wire.schema import Request
from tests.kafka_io.producer.conftest import SETTINGS, SHORT_RETRIES, TOPIC, WAIT_S, World, numbered

TRANSACTIONAL = replace(SETTINGS, transactional_id="loader")
Losing = list[type[Request[object]]]


@pytest.mark.parametrize("queue", [None, Queueing(queue_time_ms=5)])
def test_only_records_of_committed_transactions_are_read_as_committed(modern: World, queue: Queueing | None) -> None:
    # fault R22
    with open_producer(**modern.address, settings=TRANSACTIONAL, queue=queue) as producer:
        producer.init_transactions()
        for value, ends in [(b"one", producer.commit), (b"two", producer.abort), (b"three", producer.commit)]:
            producer.begin()
            producer.send_many([Message(topic=TOPIC, value=value, partition=number) for number in (0, 1)])
            ends()
    assert modern.values() == [b"one", b"three"] * 2
    assert modern.values(committed=False) == [b"one", b"two", b"three"] * 2


def test_an_error_in_the_block_aborts_the_transaction(modern: World) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL) as producer:

        def act() -> None:
            with producer.transaction():
                producer.send(TOPIC, b"gone")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            act()
        with producer.transaction():
            producer.send(TOPIC, b"kept")
    assert modern.values() == [b"kept"]


def committed(world: World, group: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": world.address["bootstrap"], "group.id": group})
    try:
        [committed_offset] = consumer.committed([confluent_kafka.TopicPartition(TOPIC, 0)], WAIT_S)
    finally:
        consumer.close()
    return int(committed_offset.offset)


def test_offsets_are_committed_together_with_the_records(modern: World) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL) as producer:
        with producer.transaction():
            producer.send(TOPIC, b"one", partition=0)
            producer.send_offsets("readers", {TopicPartition(TOPIC, 0): 1})
        producer.begin()
        producer.send_offsets("readers", {TopicPartition(TOPIC, 0): 7})
        producer.abort()
    assert committed(modern, "readers") == 1


def test_lost_answers_change_nothing(modern: World, lose_answers: Losing) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL) as producer, producer.transaction():
        lose_answers += [ProduceRequest, AddPartitionsToTxnRequest, TxnOffsetCommitRequest]
        for value in numbered(3):
            producer.send(TOPIC, value, partition=0)
        producer.send_offsets("readers", {TopicPartition(TOPIC, 0): 3})
    assert not lose_answers
    assert modern.values(committed=False) == numbered(3)


def confirm(sent: "Delivered | Future[Delivered]") -> Delivered:
    return sent if isinstance(sent, Delivered) else sent.result(WAIT_S)


@pytest.mark.parametrize("queue", [None, Queueing(queue_time_ms=0)])
def test_after_a_failure_a_transaction_can_only_be_aborted(
    modern: World, lose_answers: Losing, queue: Queueing | None
) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL, queue=queue) as producer:
        producer.begin()
        lose_answers += [ProduceRequest] * SHORT_RETRIES.backoff.attempts
        for value in numbered(2):
            with pytest.raises(KafkaIOError):
                confirm(producer.send(TOPIC, value, partition=0))
        with pytest.raises((TransactionError, Undelivered)):
            producer.commit()
        producer.abort()
        with producer.transaction():
            producer.send(TOPIC, b"again", partition=0)
    assert modern.values() == [b"again"]


def test_an_error_that_the_block_handles_still_aborts_the_transaction(modern: World, lose_answers: Losing) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL) as producer:

        def act() -> None:
            with producer.transaction():
                producer.send(TOPIC, b"one", partition=0)
                lose_answers.extend([ProduceRequest] * SHORT_RETRIES.backoff.attempts)
                with pytest.raises(KafkaIOError):
                    producer.send(TOPIC, b"two", partition=0)

        with pytest.raises(TransactionError, match="only be aborted"):
            act()
        with producer.transaction():
            producer.send(TOPIC, b"again", partition=0)
    assert modern.values() == [b"again"]


def test_after_failed_offsets_the_transaction_is_aborted(modern: World, lose_answers: Losing) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL) as producer:
        producer.begin()
        lose_answers += [AddOffsetsToTxnRequest] * SHORT_RETRIES.backoff.attempts
        with pytest.raises(KafkaIOError, match="the answer was lost"):
            producer.send_offsets("readers", {TopicPartition(TOPIC, 0): 7})
        producer.abort()
        with producer.transaction():
            producer.send(TOPIC, b"one", partition=0)
    assert modern.values() == [b"one"]
    assert committed(modern, "readers") < 0


def test_failed_messages_of_an_aborted_transaction_are_not_reported_again(modern: World, lose_answers: Losing) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL, queue=Queueing(queue_time_ms=0)) as producer:
        producer.begin()
        lose_answers += [ProduceRequest] * SHORT_RETRIES.backoff.attempts
        future = producer.send(TOPIC, b"one", partition=0)
        assert isinstance(future.exception(WAIT_S), KafkaIOError)
        producer.abort()
    assert modern.values() == []


def test_a_new_producer_with_the_same_transactional_id_fences_off_the_old_one(modern: World) -> None:
    with (
        open_producer(**modern.address, settings=TRANSACTIONAL) as old,
        open_producer(**modern.address, settings=TRANSACTIONAL) as new,
    ):
        old.begin()
        old.send(TOPIC, b"old", partition=0)
        new.init_transactions()
        with pytest.raises(BrokerError, match="newer producer"):
            old.send(TOPIC, b"older", partition=0)
        with pytest.raises(BrokerError, match="newer producer"):
            old.abort()
        for act in (old.begin, old.init_transactions):
            with pytest.raises(TransactionError, match="fenced off"):
                act()
        with new.transaction():
            new.send(TOPIC, b"new", partition=0)
    assert modern.values() == [b"new"]


def test_a_transactional_producer_sends_nothing_without_a_transaction(modern: World) -> None:
    with open_producer(**modern.address, settings=TRANSACTIONAL) as producer:
        with pytest.raises(TransactionError, match="no transaction"):
            producer.send(TOPIC, b"one")
        for act in (producer.commit, producer.abort):
            with pytest.raises(TransactionError, match="no transaction"):
                act()
        producer.begin()
        with pytest.raises(TransactionError, match="is open"):
            producer.begin()
        producer.commit()


def test_without_a_transactional_id_there_are_no_transactions(world: World) -> None:
    with open_producer(**world.address, settings=SETTINGS) as producer:
        for act in (producer.init_transactions, producer.begin, producer.commit):
            with pytest.raises(Unsupported, match="transactional_id"):
                act()


def test_undelivered_messages_survive_pickling() -> None:
    failure = DeliveryFailure(message=Message(topic=TOPIC, value=b"one"), error=KafkaIOError("no"))
    restored = pickle.loads(pickle.dumps(Undelivered("1 message", NOWHERE, [failure])))
    assert [failure.message for failure in restored.failures] == [failure.message]
    assert str(restored.with_context(Where(topic=TOPIC))) == "1 message [topic=clicks]"
