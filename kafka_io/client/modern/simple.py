"""Fetches of many partitions from 0.8 on: the leader of each is found, and asked for all that it leads at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from kafka_io.client.fetched import FetchAt, Fetched, requests_of
from kafka_io.client.modern.aborted import aborted_ranges
from kafka_io.client.modern.bounds import list_offsets
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.leading import Answers, Led, Place, by_topic, of_leaders
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.reading import Reading
from kafka_io.closing import Closing
from kafka_io.error_codes import MODERN, check, error_of
from kafka_io.errors import NOWHERE, BrokerBusy, Corrupt, KafkaIOError, LogShort, NetworkError, Where, placing
from kafka_io.messages.fetch import BY_ID_SINCE, FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic
from kafka_io.messages.list_offsets import (
    LATEST_TIME,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
)
from kafka_io.model import BrokerPartition
from kafka_io.records.columns import Decoded, Limits
from kafka_io.records.entries import Asked
from kafka_io.records.extent import extent_of, first_entry_bytes
from kafka_io.records.logs import decode
from kafka_io.records.transactions import AbortedRange
from kafka_io.wire.types import NULL_UUID

_NO_OFFSET = -1
_ISOLATION_SINCE = 2


class ModernFetching(Closing):
    """Asks the leaders that the brokers lead to which `open_` gives. One thread uses it.

    When none of them could be reached `open_` is asked again: they may have other addresses by then.
    """

    def __init__(self, open_: Callable[[], Brokers], reading: Reading, *, max_wait_ms: int) -> None:
        self._open = open_
        self._opened: Brokers | None = None
        self._reading = reading
        self._max_wait_ms = max_wait_ms

    @property
    def _brokers(self) -> Brokers:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def multifetch(self, asked: Sequence[FetchAt]) -> list[Fetched | KafkaIOError]:
        """An answer or an error for each, in order."""
        found: list[Fetched | KafkaIOError] = []
        for some in requests_of(asked, most_bytes=self._reading.sizes.max_fetch_bytes):
            places = {(one.topic, one.partition.partition): one for one in some}
            try:
                answers = of_leaders(self._brokers, places, partial(self._fetch, places))
            except KafkaIOError as error:
                answers = dict.fromkeys(places, error)
            found.extend(self._fetched(one, answers[place]) for place, one in places.items())
            if all(isinstance(answer, NetworkError) for answer in answers.values()):
                self.close()
        return found

    def _fetch(self, places: Mapping[Place, FetchAt], link: ModernLink, led: Led) -> Answers[FetchPartitionResponse]:
        # From v13 on a topic is named by its id alone; a cluster may speak that and have none yet.
        named = any(leader.topic_id == NULL_UUID for leader in led.values())
        answer = link.request(self._request(places, led), most=BY_ID_SINCE - 1 if named else None)
        check(answer.error_code, NOWHERE, MODERN)
        names = {leader.topic_id: topic for (topic, _), leader in led.items()}
        found: Answers[FetchPartitionResponse] = {
            # A broker whose quota is used up leaves partitions out (KIP-219).
            place: BrokerBusy("the broker answered without this partition")
            for place in led
        }
        for topic in answer.responses:
            for part in topic.partitions:
                found[topic.topic or names.get(topic.topic_id, ""), part.partition_index] = _accepted(part)
        if len(found) > len(led):
            raise Corrupt("an answer for a partition that was not asked for")
        return found

    def _request(self, places: Mapping[Place, FetchAt], led: Led) -> FetchRequest:
        topics = []
        for name, numbers in by_topic(led).items():
            partitions = tuple(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=led[name, number].epoch,
                    fetch_offset=places[name, number].offset,
                    partition_max_bytes=places[name, number].max_bytes,
                )
                for number in numbers
            )
            topics.append(FetchTopic(topic=name, topic_id=led[name, numbers[0]].topic_id, partitions=partitions))
        return FetchRequest(
            max_wait_ms=self._max_wait_ms,
            max_bytes=sum(places[place].max_bytes for place in led),
            isolation_level=READ_COMMITTED if self._reading.committed else READ_UNCOMMITTED,
            topics=tuple(topics),
        )

    def _fetched(self, asked: FetchAt, answer: FetchPartitionResponse | KafkaIOError) -> Fetched | KafkaIOError:
        place = Where(topic=asked.topic, partition=asked.partition.partition, offset=asked.offset)
        if isinstance(answer, KafkaIOError):
            return answer.placed(place)
        if answer.high_watermark < asked.offset:  # a leader that was just elected may not know all yet
            return LogShort(f"the broker's log ends at {answer.high_watermark}", place)
        data = memoryview(answer.records or b"")
        limits = Asked(at=asked.offset, end=answer.high_watermark)
        try:
            after = extent_of(data, limits, where=place).next_offset
        except KafkaIOError as error:
            return error
        stuck = after == asked.offset and len(data)
        return Fetched(
            asked=asked,
            next_offset=after,
            needed_bytes=max(first_entry_bytes(data) or 0, len(data) + 1) if stuck else 0,
            decode=partial(_decoded, data, limits, aborted_ranges(answer), self._reading.limits, place),
        )

    def offsets_before(self, topic: str, partition: BrokerPartition, time_ms: int, most: int) -> tuple[int, ...]:
        """See SimpleConsumer.get_offsets_before."""
        place = (topic, partition.partition)

        def ask(link: ModernLink, led: Led) -> Answers[tuple[int, ...]]:
            offsets = self._told(link, led, place, time_ms, most)
            if not offsets and link.versions.pick(ListOffsetsRequest.API):
                offsets = self._told(link, led, place, LATEST_TIME, most)  # all records are older than that
            return {place: offsets}

        with placing(self._brokers.where):
            answer = of_leaders(self._brokers, [place], ask)[place]
        if isinstance(answer, KafkaIOError):
            raise answer
        return answer

    def _told(self, link: ModernLink, led: Led, place: Place, time_ms: int, most: int) -> tuple[int, ...]:
        committed = self._reading.committed and link.versions.pick(ListOffsetsRequest.API) >= _ISOLATION_SINCE
        isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
        return _offsets(list_offsets(link, led, {place: time_ms}, isolation=isolation, most=most).get(place))[:most]

    def close(self) -> None:
        """End all connections; safe to call again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _accepted(part: FetchPartitionResponse) -> FetchPartitionResponse | KafkaIOError:
    return error_of(part.error_code, NOWHERE, MODERN) or part


def _offsets(answer: ListOffsetsPartitionResponse | None) -> tuple[int, ...]:
    if answer is None:
        raise Corrupt("an answer without the partition that was asked for")
    check(answer.error_code, NOWHERE, MODERN)
    return answer.old_style_offsets or (() if answer.offset == _NO_OFFSET else (answer.offset,))


def _decoded(
    data: memoryview, asked: Asked, aborted: Sequence[AbortedRange], limits: Limits, where: Where
) -> Iterator[Decoded]:
    return decode(data, asked, aborted=aborted, limits=limits, where=where)
