"""Produce: which records are stored, and the answer that the producer gets."""

# faults R01, R02, R04, R05, R12, R13
from typing import Any

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_io.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.records.layout import CONTROL, TRANSACTIONAL
from kafka_io.wire.conversation import ClientConversation, VersionedRequest
from tests.kafka_io.records.decoding import batch_around, changed
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import (
    Client,
    batch,
    expected_values,
    numbered,
    produce_request,
    values,
)


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_is_stored_with_the_bytes_that_the_producer_sent(client: Client, codec: int) -> None:
    sent = bytes(batch(3, codec=codec))
    assert client.produce("clicks", sent).base_offset == 0
    assert client.produce("clicks", sent).base_offset == 3
    stored = bytes(client.fetch("clicks").records or b"")
    assert (len(stored), stored[16 : len(sent)], stored[len(sent) + 16 :]) == (2 * len(sent), sent[16:], sent[16:])
    assert values(stored) == 2 * expected_values(3)


@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (2, 0)])
def test_messages_of_old_formats_are_stored_as_batches(client: Client, version: int, magic: int, codec: int) -> None:
    """The offsets that a producer writes have no meaning: here all are 0, as some producers send them."""
    records = numbered(4)
    sets = [log_messages([record], magic=magic) for record in records]
    data = b"".join(sets) if not codec else log_messages(records, magic=magic, codec=codec)
    assert client.produce("clicks", data, version=version).error_code == 0
    assert client.produce("clicks", data, version=version).base_offset == 4
    answer = client.fetch("clicks")
    assert (values(answer.records), answer.high_watermark) == (2 * expected_values(4), 8)
    assert client.offset_at("clicks", records[1].timestamp)[1] == (1 if magic else -1)


def test_a_producer_with_acks_0_gets_no_answer(client: Client) -> None:
    silent = ClientConversation("silent")
    client.socket.sendall(silent.send(VersionedRequest(produce_request("clicks", batch(3), acks=0), 9)))
    assert client.fetch("clicks").high_watermark == 3
    client.socket.sendall(silent.send(VersionedRequest(produce_request("nobody", batch(3), acks=0), 9)))
    assert client.is_closed(), "closing is the only possible sign"


def test_each_partition_of_a_produce_request_has_its_own_result(start_modern: StartModern, connect: Connect) -> None:
    client = connect(start_modern())
    client.create("clicks", 2)
    parts = tuple(
        ProducePartition(index=index, records=bytes(data))
        for index, data in ((0, batch(2)), (1, b"nonsense"), (2, batch(1)))
    )
    answer = client.ask(
        ProduceRequest(acks=1, timeout_ms=1, topic_data=(ProduceTopic(name="clicks", partition_data=parts),)), 9
    )
    codes = [partition.error_code for partition in answer.responses[0].partition_responses]
    assert codes == [0, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_topic_can_be_given_by_its_id(client: Client) -> None:
    [topic] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="clicks"),))).topics
    parts = (ProducePartition(index=0, records=bytes(batch(2))),)
    codes = []
    for topic_id in (topic.topic_id, type(topic.topic_id)(int=1)):
        data = (ProduceTopic(topic_id=topic_id, partition_data=parts),)
        answer = client.ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=data), 13)
        codes.append(answer.responses[0].partition_responses[0].error_code)
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_ID]


WHOLE = bytes(batch(3))
RECORDS = WHOLE[61:]
REFUSED: dict[str, tuple[bytes, dict[str, Any], ErrorCode]] = {
    "nothing": (b"", {}, ErrorCode.CORRUPT_MESSAGE),
    "a wrong CRC": (WHOLE[:-1] + b"!", {}, ErrorCode.CORRUPT_MESSAGE),
    "a cut batch": (WHOLE[:-1], {}, ErrorCode.INVALID_RECORD),
    "two batches": (2 * WHOLE, {}, ErrorCode.INVALID_RECORD),
    "magic 3": (changed(WHOLE, 16, b"\x03"), {}, ErrorCode.CORRUPT_MESSAGE),
    "a message where a batch should be": (log_messages(numbered(1), magic=1), {}, ErrorCode.CORRUPT_MESSAGE),
    "codec 5": (changed(WHOLE, 22, b"\x05"), {}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "zstd before its time": (bytes(batch(3, codec=4)), {"version": 6}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "fewer records than it says": (batch_around(RECORDS, count=4, last_delta=3), {}, ErrorCode.CORRUPT_MESSAGE),
    "more records than it says": (batch_around(RECORDS, count=2, last_delta=1), {}, ErrorCode.CORRUPT_MESSAGE),
    "offsets that leave some out": (
        record_batch([Record(offset=offset, value=b"x") for offset in (0, 2)]),
        {},
        ErrorCode.INVALID_RECORD,
    ),
    "a marker": (record_batch(numbered(1), attributes=CONTROL), {}, ErrorCode.INVALID_RECORD),
    "a transaction nobody began": (
        record_batch(numbered(1), attributes=TRANSACTIONAL, producer=(1, 0, 0)),
        {},
        ErrorCode.INVALID_TXN_STATE,
    ),
    "a producer without numbers": (record_batch(numbered(1), producer=(1, 0, -1)), {}, ErrorCode.INVALID_RECORD),
    "strange acks": (WHOLE, {"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
    "too large": (bytes(2_000_000), {}, ErrorCode.MESSAGE_TOO_LARGE),
    "an old message with a wrong CRC": (
        log_messages(numbered(1), magic=0)[:-1] + b"!",
        {"version": 1},
        ErrorCode.CORRUPT_MESSAGE,
    ),
    "an old message that is cut": (log_messages(numbered(1), magic=1)[:-1], {"version": 2}, ErrorCode.CORRUPT_MESSAGE),
    "an old message with a tail": (
        log_messages(numbered(1), magic=1) + b"x",
        {"version": 2},
        ErrorCode.CORRUPT_MESSAGE,
    ),
    "a batch among old messages": (WHOLE, {"version": 2}, ErrorCode.CORRUPT_MESSAGE),
    "no old message at all": (b"", {"version": 2}, ErrorCode.INVALID_RECORD),
    "a compressed message in a compressed one": (
        log_messages([Record(value=log_messages(numbered(1), magic=1, codec=1))], magic=1, codec=1),
        {"version": 2},
        ErrorCode.NONE,  # the inner messages are an ordinary value: only messages with a codec are decompressed
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_records_are_refused_and_not_stored(client: Client, name: str) -> None:
    data, arguments, code = REFUSED[name]
    assert client.produce("clicks", data, **arguments).error_code == code
    assert client.fetch("clicks").high_watermark == (0 if code else 1)


def test_a_batch_that_decompresses_beyond_the_limit_is_refused(start_modern: StartModern, connect: Connect) -> None:
    # fault R15
    client = connect(start_modern(max_decompressed_bytes=10_000))
    client.create("clicks")
    bomb = record_batch([Record(value=bytes(1_000_000))], codec=1)
    assert client.produce("clicks", bomb).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_producer_that_repeats_a_batch_gets_its_base_offset(client: Client) -> None:
    sent = batch(3, producer=(9, 0, 0))
    assert [client.produce("clicks", sent).base_offset for _ in range(2)] == [0, 0]
    assert client.produce("clicks", batch(3, producer=(9, 0, 6))).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.fetch("clicks").high_watermark == 3
