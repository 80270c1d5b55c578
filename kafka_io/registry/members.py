"""Nodes of group members in ZooKeeper and of the partitions they own, as text [kafka-0.7: Consumer registry].

/consumers/<group>/ids/<id>                 { "clicks": 2 }          0.7: by topic, the number of streams
                                            *1*clicks|views          all topics that match, with one stream
                                            !1!clicks|views          all topics that do not
/consumers/<group>/ids/<id>                 {"version":1,"subscription":{"clicks":2},"pattern":"static",
                                             "timestamp":"..."}      0.8: or "white_list", "black_list"
/consumers/<group>/owners/<topic>/<partition>    <id>-<stream>       the thread that consumes it

An id is `<group>_<host>-<ms>-<8 hex>`. All of these nodes are ephemeral.

A filter is a regular expression of Java. Like the genuine consumers' it must match a whole name, a comma stands for |,
and blanks and outer quotes are dropped. Python's expressions mean the same but for Java's own classes of characters.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from kafka_io.errors import NodeMalformed
from kafka_io.model import BrokerPartition
from kafka_io.registry.consumers import CONSUMERS
from kafka_io.registry.dialect import RegistryFormat
from kafka_io.registry.json_text import JsonObject
from kafka_io.registry.text import malformed, shown, text_of

MAX_STREAMS = 10_000
_MAX_VALUE_BYTES = 2**20
_FILTER_07 = re.compile(r"(?P<mark>[*!])(?P<streams>[0-9]{1,5})(?P=mark)(?P<regex>.*)", re.DOTALL)
_STATIC, _WHITE, _BLACK = "static", "white_list", "black_list"
_MARKS = {"*": _WHITE, "!": _BLACK}


def ids_path(group: str) -> str:
    """The parent of the nodes of the group's members."""
    return f"{CONSUMERS}/{group}/ids"


def owners_path(group: str, topic: str) -> str:
    """The parent of the owner nodes of a topic's partitions."""
    return f"{CONSUMERS}/{group}/owners/{topic}"


def owner_path(group: str, topic: str, partition: BrokerPartition) -> str:
    """The node that names the consumer thread of a partition."""
    return f"{owners_path(group, topic)}/{partition}"


def thread_id(member: str, stream: int) -> str:
    """The name of one stream of a member."""
    return f"{member}-{stream}"


@dataclass(frozen=True, slots=True)
class StaticSubscription:
    """A subscription to named topics, with a number of streams for each."""

    topics: Mapping[str, int]

    def streams_of(self, topic: str) -> int:
        """The number of streams that consume the topic."""
        return self.topics.get(topic, 0)

    def wanted(self, names: Iterable[str]) -> list[str]:
        """The subscribed topics, whether they exist (`names`) or not."""
        del names
        return sorted(self.topics)

    def value(self, dialect: RegistryFormat, *, timestamp_ms: int) -> bytes:
        """The value of the member's node for this subscription."""
        if dialect is RegistryFormat.JSON:
            return _json(self.topics, _STATIC, timestamp_ms)
        inside = ", ".join(f"{json.dumps(topic)}: {streams}" for topic, streams in self.topics.items())
        return f"{{ {inside} }}".encode()


@dataclass(frozen=True)
class FilterSubscription:
    """A subscription to all topics that a filter allows. `pattern` is `white_list` or `black_list`.

    Raises:
        ValueError: the filter is not a regular expression.
    """

    regex: str
    pattern: str
    streams: int

    @classmethod
    def of(cls, raw: str, pattern: str, streams: int) -> Self:
        """The subscription for a filter as a user writes it."""
        regex = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
        subscription = cls(regex, pattern, streams)
        assert subscription._compiled  # raises the ValueError now and not at the first use
        return subscription

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        try:
            return re.compile(self.regex)
        except re.error as error:
            raise ValueError(f"the filter {shown(self.regex)} is not a regular expression: {error}") from error

    def streams_of(self, topic: str) -> int:
        """The number of streams that consume the topic."""
        allowed = (self._compiled.fullmatch(topic) is None) == (self.pattern == _BLACK)
        return self.streams if allowed else 0

    def wanted(self, names: Iterable[str]) -> list[str]:
        """The subscribed topics among `names`."""
        return sorted(name for name in names if self.streams_of(name))

    def value(self, dialect: RegistryFormat, *, timestamp_ms: int) -> bytes:
        """The value of the member's node for this subscription."""
        if dialect is RegistryFormat.JSON:
            return _json({self.regex: self.streams}, self.pattern, timestamp_ms)
        mark = next(mark for mark, pattern in _MARKS.items() if pattern == self.pattern)
        return f"{mark}{self.streams}{mark}{self.regex}".encode()


ConsumerSubscription = StaticSubscription | FilterSubscription


def whitelist(regex: str, streams: int) -> FilterSubscription:
    """A subscription to all topics whose whole name matches."""
    return FilterSubscription.of(regex, _WHITE, streams)


def blacklist(regex: str, streams: int) -> FilterSubscription:
    """A subscription to all topics whose whole name does not match."""
    return FilterSubscription.of(regex, _BLACK, streams)


def parse_subscription(path: str, data: bytes) -> ConsumerSubscription:
    """The subscription in the node of a member, of either generation.

    Raises:
        NodeMalformed: the value is not a subscription, or its filter is not a regular expression for Python.
    """
    filter_07 = _FILTER_07.fullmatch(text_of(path, data, max_bytes=_MAX_VALUE_BYTES))
    if filter_07:
        return _filtered(path, filter_07["regex"], _MARKS[filter_07["mark"]], int(filter_07["streams"]))
    node = JsonObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES)
    is_08 = type(node.fields.get("version")) is int and isinstance(node.fields.get("subscription"), dict)
    counts = node.object("subscription") if is_08 else node
    streams = {name: counts.integer(name, max_value=MAX_STREAMS) for name in counts.fields}
    pattern = node.text("pattern") if is_08 else _STATIC
    if pattern == _STATIC:
        return StaticSubscription(streams)
    if pattern not in _MARKS.values() or len(streams) != 1:
        raise malformed(path, f"{len(streams)} filters of the pattern {shown(pattern)}")
    [(regex, count)] = streams.items()
    return _filtered(path, regex, pattern, count)


def _filtered(path: str, regex: str, pattern: str, streams: int) -> FilterSubscription:
    try:
        return FilterSubscription.of(regex, pattern, streams)
    except ValueError as error:
        raise malformed(path, str(error)) from error


def threads_of(topic: str, members: Mapping[str, ConsumerSubscription]) -> list[str]:
    """The consumer threads of all members that consume the topic."""
    return [
        thread_id(member, stream)
        for member, subscription in members.items()
        for stream in range(subscription.streams_of(topic))
    ]


def check_member_name(name: str) -> None:
    """Check that a member can have this name, which becomes the name of its node.

    Raises:
        NodeMalformed: the name is illegal.
    """
    if not name.isprintable() or name in {"", ".", ".."} or "/" in name:
        raise NodeMalformed(f"{shown(name)} is not a legal consumer name")


def _json(counts: Mapping[str, int], pattern: str, timestamp_ms: int) -> bytes:
    value = {"version": 1, "subscription": dict(counts), "pattern": pattern, "timestamp": str(timestamp_ms)}
    return json.dumps(value, separators=(",", ":")).encode()
