"""Sending from 0.8 on: one batch under way per partition, so that what is tried again never changes the order."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_io.client.modern.bounds import list_offsets
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.leading import Answers, Led, Place, of_leaders
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.modern.writing import NO_OFFSET, Batch, Writing, partitions_of, write
from kafka_io.client.producer.identity import Identity
from kafka_io.client.producer.settings import ProducerSettings
from kafka_io.client.producer.transactions import Transactions
from kafka_io.client.producer.transport import Parcel, Transport
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import KafkaIOError, Where
from kafka_io.messages.init_producer_id import InitProducerIdRequest
from kafka_io.messages.list_offsets import LATEST_TIME
from kafka_io.model import BrokerPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The partitions of a topic, and until when they may be taken as true."""

    targets: tuple[BrokerPartition, ...]
    until_s: float


class ModernTransport(Transport):
    """Sends to the leaders that `brokers` lead to."""

    def __init__(self, brokers: Brokers, settings: ProducerSettings) -> None:
        self._brokers = brokers
        self._max_age_s = settings.metadata_max_age_ms / 1000
        self._timeout_ms = settings.transaction_timeout_ms
        self._known: dict[str, _Known] = {}
        self._unanswered: set[Place] = set()
        self._writing = Writing(
            acks=settings.required_acks,
            timeout_ms=settings.request_timeout_ms,
            transactional_id=settings.transactional_id,
        )
        if settings.transactional_id is not None:
            self.transactions = Transactions(brokers, settings.transactional_id, timeout_ms=self._timeout_ms)
        begin = self.transactions.producer if self.transactions else self._new_producer
        self._identity = Identity(begin if settings.numbered else lambda: None)

    def targets(self, topic: str) -> Sequence[BrokerPartition]:
        """The topic's partitions; a topic that is not there is asked for."""
        known = self._known.get(topic)
        if known is None or time.monotonic() >= known.until_s:
            found = tuple(BrokerPartition(None, number) for number in partitions_of(self._brokers, topic))
            known = self._known[topic] = _Known(targets=found, until_s=time.monotonic() + self._max_age_s)
        return known.targets

    def send(self, parcels: Sequence[Parcel]) -> list[int | KafkaIOError | None]:
        """One request to each leader; what may pass is tried again as often as the patience allows."""
        places = {(parcel.topic, parcel.partition.partition): parcel for parcel in parcels}
        try:
            found = self._sent(places)
        except KafkaIOError as error:
            found = dict.fromkeys(places, error)
        for (topic, _), answer in found.items():
            if isinstance(answer, KafkaIOError):
                self._known.pop(topic, None)
                self._identity.forget()
                if self.transactions is not None:
                    self.transactions.fail(answer)
        return [None if found[place] == NO_OFFSET else found[place] for place in places]

    def _sent(self, places: dict[Place, Parcel]) -> Answers[int]:
        if self.transactions is not None:
            self.transactions.add(places)
        numbers = self._identity.numbers(places)
        batches = {
            place: Batch(records=parcel.records, codec=parcel.codec, producer=numbers[place], since=parcel.since)
            for place, parcel in places.items()
        }
        answers = of_leaders(self._brokers, places, lambda link, led: write(link, led, batches, self._writing))
        self._identity.count({place: len(parcel.records) for place, parcel in places.items()})
        if not self._writing.acks:
            self._unanswered.update(places)
        return answers

    def begin_transactions(self) -> None:
        """Ask for the producer's id and epoch, if they are not known; not while a transaction is open."""
        if self.transactions is None:
            super().begin_transactions()
        else:
            self.transactions.check_ended()
            if self.transactions.failed:
                self._identity.forget()
        self._identity.begin()

    def _new_producer(self) -> tuple[int, int] | None:
        """Id and epoch of a producer without transactions; None where brokers know nothing of it, before 0.11."""

        def ask(link: ModernLink) -> tuple[int, int] | None:
            if InitProducerIdRequest.API.key not in link.versions.offered:
                return None
            answer = link.request(InitProducerIdRequest(transaction_timeout_ms=self._timeout_ms))
            check(answer.error_code, Where(), MODERN)
            return answer.producer_id, answer.producer_epoch

        return self._brokers.patiently(lambda: self._brokers.of_any(ask))

    def close(self) -> None:
        """End all connections; safe to call again.

        Old brokers drop what they have not begun with when a connection ends. So those that were to answer nothing are
        asked something first: they work in order.
        """
        places, self._unanswered = self._unanswered, set()
        of_leaders(self._brokers, places, _heard)
        self._brokers.close()


def _heard(link: ModernLink, led: Led) -> Answers[None]:
    """Wait until the broker has come to this, whatever it answers."""
    list_offsets(link, led, dict.fromkeys(led, LATEST_TIME))
    return dict.fromkeys(led)
