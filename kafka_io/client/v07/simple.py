"""Fetches from brokers of 0.7: bytes of one partition from one broker, or of many in one MULTIFETCH."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from kafka_io.client.fetched import FetchAt, Fetched, requests_of
from kafka_io.client.reading import Reading
from kafka_io.client.v07.link import Link07
from kafka_io.closing import Closing
from kafka_io.error_codes import check
from kafka_io.errors import Corrupt, KafkaIOError, NetworkError, Where, WireError, placing
from kafka_io.model import Broker, BrokerPartition
from kafka_io.records.batches import first_length, whole_bytes
from kafka_io.records.columns import Decoded, Limits, decode_v07
from kafka_io.v07.messages import Fetch, FetchAnswer, MultiFetch, MultiFetchAnswer, Offsets, OffsetsAnswer


class Fetching07(Closing):
    """Asks the broker that `find` names for each partition; one connection to each. One thread uses it.

    After a broker could not be reached it is looked for again: it may have another address by then.
    """

    def __init__(self, find: Callable[[BrokerPartition], Broker], reading: Reading) -> None:
        self._find = find
        self._reading = reading
        self._links: dict[int | None, Link07] = {}

    def multifetch(self, asked: Sequence[FetchAt]) -> list[Fetched | KafkaIOError]:
        """An answer or an error for each, in order."""
        by_broker: dict[int | None, list[FetchAt]] = defaultdict(list)
        for one in asked:
            by_broker[one.partition.broker].append(one)
        answers = {broker: self._of_broker(some) for broker, some in by_broker.items()}
        return [next(answers[one.partition.broker]) for one in asked]

    def _of_broker(self, asked: Sequence[FetchAt]) -> Iterator[Fetched | KafkaIOError]:
        for some in requests_of(asked, most_bytes=self._reading.sizes.max_fetch_bytes):
            yield from self._answers(some)

    def _answers(self, asked: Sequence[FetchAt]) -> Sequence[Fetched | KafkaIOError]:
        try:
            link = self._link(asked[0].partition)
            fetches = tuple(_fetch(one) for one in asked)
            with self._dropping(link, asked[0].partition):
                answer = link.ask(fetches[0] if len(fetches) == 1 else MultiFetch(fetches))
        except KafkaIOError as error:
            return [error.placed(_where(one)) for one in asked]
        answers = answer.answers if isinstance(answer, MultiFetchAnswer) else (answer,)
        return [self._fetched(one, part, link.where) for one, part in zip(asked, answers, strict=True)]

    def _fetched(self, asked: FetchAt, answer: object, broker: Where) -> Fetched | KafkaIOError:
        assert isinstance(answer, FetchAnswer)
        place = _where(asked).within(broker)
        try:
            check(answer.error, place)
            data = memoryview(answer.message_set)
            whole = whole_bytes(data, base=asked.offset, where=place)
        except KafkaIOError as error:
            return error
        return Fetched(
            asked=asked,
            next_offset=asked.offset + whole,
            needed_bytes=0 if whole or not data else max(first_length(data) or 0, len(data) + 1),
            decode=partial(_decoded, data[:whole], asked.offset, self._reading.limits, place),
        )

    def offsets_before(self, topic: str, partition: BrokerPartition, time_ms: int, most: int) -> tuple[int, ...]:
        """See SimpleConsumer.get_offsets_before."""
        with placing(Where(topic=topic, partition=str(partition))):
            link = self._link(partition)
            with self._dropping(link, partition):
                answer = link.ask(Offsets(topic, partition.partition, time_ms, most))
            assert isinstance(answer, OffsetsAnswer)
            check(answer.error, link.where)
            if list(answer.offsets) != sorted(answer.offsets, reverse=True) or any(one < 0 for one in answer.offsets):
                raise Corrupt(f"offsets that cannot be right: {list(answer.offsets[:5])}")
            return answer.offsets

    def _link(self, partition: BrokerPartition) -> Link07:
        link = self._links.get(partition.broker)
        if link is None:
            link = self._links[partition.broker] = Link07(self._find(partition), self._reading.patience)
        return link

    @contextmanager
    def _dropping(self, link: Link07, partition: BrokerPartition) -> Iterator[None]:
        try:
            yield
        except NetworkError:
            link.close()
            self._links.pop(partition.broker, None)
            raise

    def close(self) -> None:
        """End all connections; safe to call again."""
        for link in self._links.values():
            link.close()
        self._links.clear()


def at_any(broker: Broker) -> Callable[[BrokerPartition], Broker]:
    """Finds `broker` for each partition."""
    return lambda _partition: broker


def _fetch(asked: FetchAt) -> Fetch:
    return Fetch(asked.topic, asked.partition.partition, asked.offset, asked.max_bytes)


def _where(asked: FetchAt) -> Where:
    return Where(topic=asked.topic, partition=str(asked.partition), offset=asked.offset)


def _decoded(data: memoryview, base: int, limits: Limits, where: Where) -> Iterator[Decoded]:
    """The batches; what is right in front of a bad message comes before the error."""
    at = base
    try:
        for decoded in decode_v07(data, base=base, limits=limits, where=where):
            at = decoded.next_offset
            yield decoded
    except WireError as error:
        bad = error.where.offset
        if bad is not None and bad > at:
            yield from decode_v07(data[at - base : bad - base], base=at, limits=limits, where=where)
        raise
