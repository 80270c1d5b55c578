"""Fetches from brokers of 0.7: FETCH for one partition of a broker, MULTIFETCH for several."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.closing import Closing
from kafka_io.consumer.fetched import FetchPosition, FetchResult, split_into_requests
from kafka_io.error_codes import ErrorCode07
from kafka_io.errors import Corrupt, KafkaIOError, NetworkError, Where, WireError, error_context
from kafka_io.model import Broker, BrokerPartition
from kafka_io.reader.reader import ReadSettings
from kafka_io.records.decoded_batch import DecodedBatch, DecodeLimits
from kafka_io.records.v07.decoder import decode_v07
from kafka_io.records.v07.message_set import first_length, whole_bytes
from kafka_io.v07.messages import (
    AnyAnswer,
    AnyRequest,
    FetchAnswer07,
    FetchRequest07,
    MultiFetchAnswer07,
    MultiFetchRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
)


class PartitionFetcher07(Closing):
    """Fetches each partition from the broker that `find` returns, over one connection per broker. One thread uses it.

    After a broker could not be reached, `find` is called again: the broker may have another address by then.
    """

    def __init__(self, find: Callable[[BrokerPartition], Broker], read_settings: ReadSettings) -> None:
        self._find = find
        self._read_settings = read_settings
        self._connections: dict[int | None, BrokerConnection07] = {}

    def multifetch(self, positions: Sequence[FetchPosition]) -> list[FetchResult | KafkaIOError]:
        """A result or an error for each position, in order."""
        by_broker: dict[int | None, list[FetchPosition]] = defaultdict(list)
        for position in positions:
            by_broker[position.partition.broker].append(position)
        results = {broker: self._broker_results(requested) for broker, requested in by_broker.items()}
        return [next(results[position.partition.broker]) for position in positions]

    def _broker_results(self, positions: Sequence[FetchPosition]) -> Iterator[FetchResult | KafkaIOError]:
        for request in split_into_requests(positions, max_bytes=self._read_settings.sizes.max_fetch_bytes):
            yield from self._request(request)

    def _request(self, positions: Sequence[FetchPosition]) -> Sequence[FetchResult | KafkaIOError]:
        fetches = tuple(
            FetchRequest07(position.topic, position.partition.partition, position.offset, position.max_bytes)
            for position in positions
        )
        try:
            response, broker = self._ask(
                positions[0].partition, fetches[0] if len(fetches) == 1 else MultiFetchRequest07(fetches)
            )
        except KafkaIOError as error:
            return [error.with_context(position.where) for position in positions]
        answers = response.answers if isinstance(response, MultiFetchAnswer07) else (response,)
        return [self._result(position, answer, broker) for position, answer in zip(positions, answers, strict=True)]

    def _result(self, position: FetchPosition, answer: object, broker: Where) -> FetchResult | KafkaIOError:
        assert isinstance(answer, FetchAnswer07)
        where = position.where.within(broker)
        try:
            ErrorCode07.check(answer.error, where)
            data = memoryview(answer.message_set)
            size = whole_bytes(data, base=position.offset, where=where)
        except KafkaIOError as error:
            return error
        return FetchResult(
            position=position,
            next_offset=position.offset + size,
            needed_bytes=0 if size or not data else max(first_length(data) or 0, len(data) + 1),
            batches=partial(_decoded, data[:size], position.offset, self._read_settings.limits, where),
        )

    def offsets_before(self, topic: str, partition: BrokerPartition, time_ms: int, max_offsets: int) -> tuple[int, ...]:
        """Offsets from which to read what was written before a time; the newest first."""
        with error_context(Where(topic=topic, partition=str(partition))):
            request = OffsetsRequest07(topic, partition.partition, time_ms, max_offsets)
            answer, broker = self._ask(partition, request)
            assert isinstance(answer, OffsetsAnswer07)
            ErrorCode07.check(answer.error, broker)
            offsets = answer.offsets
            if list(offsets) != sorted(offsets, reverse=True) or any(offset < 0 for offset in offsets):
                raise Corrupt(f"the broker listed impossible offsets: {list(offsets[:5])}")
            return offsets

    def _ask(self, partition: BrokerPartition, request: AnyRequest) -> tuple[AnyAnswer, Where]:
        """The answer of the partition's broker, and which broker it is.

        After a network error the connection is dropped, so that the broker is looked up again.
        """
        connection = self._connections.get(partition.broker)
        if connection is None:
            connection = BrokerConnection07(self._find(partition), self._read_settings.retry_policy)
            self._connections[partition.broker] = connection
        try:
            return connection.request(request), connection.where
        except NetworkError:
            self._connections.pop(partition.broker).close()
            raise

    def close(self) -> None:
        """End all connections; safe to call again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _decoded(data: memoryview, base: int, limits: DecodeLimits, where: Where) -> Iterator[DecodedBatch]:
    """Decode the batches; the valid messages before a corrupt one are returned before its error is raised."""
    next_offset = base
    try:
        for decoded in decode_v07(data, base=base, limits=limits, where=where):
            next_offset = decoded.next_offset
            yield decoded
    except WireError as error:
        # The error discarded the whole batch that it occurred in. Decode again up to the corrupt message.
        corrupt_offset = error.where.offset
        if corrupt_offset is not None and corrupt_offset > next_offset:
            valid = data[next_offset - base : corrupt_offset - base]
            yield from decode_v07(valid, base=next_offset, limits=limits, where=where)
        raise
