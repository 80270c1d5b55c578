"""Questions about many partitions, of one topic or of hundreds: one to each leader, however many it leads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kafka_io.client.modern.brokers import Brokers, Leader
from kafka_io.client.modern.link import ModernLink
from kafka_io.errors import KafkaIOError, Where

T = TypeVar("T")

Place = tuple[str, int]
"""A topic and the number of one of its partitions."""
Led = Mapping[Place, Leader]
Answers = dict[Place, T | KafkaIOError]


def of_leaders(brokers: Brokers, places: Iterable[Place], ask: Callable[[ModernLink, Led], Answers[T]]) -> Answers[T]:
    """What `ask` tells of each partition, called for each leader; again where that may help.

    An error hides only what it concerns.
    """
    found: Answers[T] = {}
    pending = sorted(set(places))

    def attempt() -> None:
        nonlocal pending
        failed: dict[Place, KafkaIOError] = {}
        for link, led in _leaders_of(brokers, pending, failed):
            for place, answer in _asked(ask, link, led).items():
                if isinstance(answer, KafkaIOError):
                    failed[place] = answer.placed(_where(place).within(link.where))
                else:
                    found[place] = answer
        found.update(failed)
        pending = sorted(place for place, error in failed.items() if error.retriable)
        if pending:
            for topic in by_topic(pending):
                brokers.forget(topic)
            raise failed[pending[0]]

    try:
        brokers.patiently(attempt)
    except KafkaIOError as error:
        for place in pending:
            found.setdefault(place, error.placed(_where(place)))
    return found


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """The numbers of the partitions, by topic, in the order they come."""
    topics: dict[str, list[int]] = {}
    for topic, number in places:
        topics.setdefault(topic, []).append(number)
    return topics


def _leaders_of(
    brokers: Brokers, places: Sequence[Place], failed: dict[Place, KafkaIOError]
) -> Iterable[tuple[ModernLink, Led]]:
    """Each leader with its partitions; a partition without one is put into `failed`."""
    brokers.learn(by_topic(places))
    groups: dict[ModernLink, dict[Place, Leader]] = {}
    for place in places:
        try:
            leader = brokers.leader(*place)
        except KafkaIOError as error:
            failed[place] = error
        else:
            groups.setdefault(leader.link, {})[place] = leader
    return groups.items()


def _asked(ask: Callable[[ModernLink, Led], Answers[T]], link: ModernLink, led: Led) -> Answers[T]:
    try:
        return ask(link, led)
    except KafkaIOError as error:
        return dict.fromkeys(led, error)


def _where(place: Place) -> Where:
    topic, number = place
    return Where(topic=topic, partition=number)
