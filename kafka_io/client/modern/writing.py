"""Produce requests: batches of records to the leaders of their partitions, in the newest format that these keep."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.leading import Answers, Led, Place
from kafka_io.client.modern.link import ModernLink
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.error_codes import MODERN, error_of
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError, LeaderMoved, Unsupported
from kafka_io.messages.produce import (
    BY_ID_SINCE,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from kafka_io.records.build import NO_PRODUCER, Record, log_messages, record_batch
from kafka_io.records.layout import TRANSACTIONAL
from kafka_io.wire.conversation import Versioned
from kafka_io.wire.types import NULL_UUID

ALL_IN_SYNC = -1
NO_OFFSET = -1
TIMES_SINCE = 2  # of Produce: message format 1
BATCHES_SINCE = 3
_ZSTD_SINCE = 7  # KIP-110
_LAST_OF_OLD_TRANSACTIONS = 11  # later, to write adds the partition to the transaction too (KIP-890)
_UNKNOWN_TOPIC = 3
_DUPLICATE_SEQUENCE = 46


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Records for one partition, numbered from 0 on; `since` is the first version of Produce that can carry them."""

    records: Sequence[Record]
    codec: int = 0
    producer: tuple[int, int, int] = NO_PRODUCER
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Who must have a batch before it is answered (0, 1, ALL_IN_SYNC), how long that may take, in whose transaction."""

    acks: int = ALL_IN_SYNC
    timeout_ms: int = 30_000
    transactional_id: str | None = None


def write(link: ModernLink, led: Led, batches: Mapping[Place, Batch], writing: Writing) -> Answers[int]:
    """Write a batch to each partition that `link` leads; the offset of its first record, NO_OFFSET if nobody tells.

    A batch that the broker has already is not written again, and is no error.

    Raises:
        NetworkError: the broker went away; any of the batches may be there.
        WireError: what it sends is no answer.
    """
    version = link.versions.pick(ProduceRequest.API, most=_most(led, writing))
    entries: dict[Place, bytes] = {}
    found: Answers[int] = {}
    for place in led:
        try:
            entries[place] = _entries(batches[place], version, writing)
        except Unsupported as error:
            found[place] = error
    if not entries:
        return found
    request = ProduceRequest(
        transactional_id=writing.transactional_id,
        acks=writing.acks,
        timeout_ms=writing.timeout_ms,
        topic_data=tuple(_topics(led, entries)),
    )
    if not writing.acks:
        link.tell(Versioned(request, version, answered=False))
        return found | dict.fromkeys(entries, NO_OFFSET)
    answers = _answers(link.request(request, most=version), led)
    return found | {place: _outcome(answers, place) for place in entries}


def partitions_of(brokers: Brokers, topic: str) -> list[int]:
    """The topic's partitions; a topic that is not there is asked for.

    Raises:
        LeaderMoved: it is not there and is not made.
        NetworkError: no broker can be reached.
    """

    def attempt() -> list[int]:
        brokers.forget(topic)
        found = brokers.topic(topic)
        if found is None or not found.partitions:
            brokers.make(topic)
            raise LeaderMoved("the brokers have no such topic, and have not made it yet", code=_UNKNOWN_TOPIC)
        return sorted(one.partition_index for one in found.partitions)

    return brokers.patiently(attempt)


def _most(led: Led, writing: Writing) -> int | None:
    if writing.transactional_id is not None:
        return _LAST_OF_OLD_TRANSACTIONS
    unnamed = any(leader.topic_id == NULL_UUID for leader in led.values())
    return BY_ID_SINCE - 1 if unnamed else None


def _entries(batch: Batch, version: int, writing: Writing) -> bytes:
    """The records in the format that belongs to a version of Produce."""
    if version < batch.since:
        lacks = "headers before 0.11" if version >= TIMES_SINCE else "timestamps before 0.10"
        raise Unsupported(f"records have no {lacks}")
    if batch.codec == CODEC_NUMBERS["zstd"] and version < _ZSTD_SINCE:
        raise Unsupported("brokers before 2.1 do not know zstd")
    if version >= BATCHES_SINCE:
        attributes = 0 if writing.transactional_id is None else TRANSACTIONAL
        return record_batch(batch.records, codec=batch.codec, attributes=attributes, producer=batch.producer)
    return log_messages(batch.records, magic=int(version >= TIMES_SINCE), codec=batch.codec)


def _topics(led: Led, entries: Mapping[Place, bytes]) -> Iterator[ProduceTopic]:
    for topic, places in groupby(sorted(entries), key=lambda place: place[0]):
        of_topic = list(places)
        yield ProduceTopic(
            name=topic,
            topic_id=led[of_topic[0]].topic_id,
            partition_data=tuple(ProducePartition(index=place[1], records=entries[place]) for place in of_topic),
        )


def _answers(answer: ProduceResponse, led: Led) -> dict[Place, ProducePartitionResponse]:
    names = {leader.topic_id: topic for (topic, _), leader in led.items()}
    return {
        (topic.name or names.get(topic.topic_id, ""), one.index): one
        for topic in answer.responses
        for one in topic.partition_responses
    }


def _outcome(answers: Mapping[Place, ProducePartitionResponse], place: Place) -> int | KafkaIOError:
    one = answers.get(place)
    if one is None:
        raise Corrupt("an answer without the partition that was written to")
    if one.error_code == _DUPLICATE_SEQUENCE:
        return NO_OFFSET
    refused = error_of(one.error_code, NOWHERE, MODERN)
    return one.base_offset if refused is None else refused
