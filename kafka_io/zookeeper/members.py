"""Nodes of group members and of the partitions they own, as text, and the assignment that follows from them.

/consumers/<group>/ids/<id>                 { "clicks": 2 }          0.7: by topic, the number of streams
                                            *1*clicks|views          all topics that match, with one stream
                                            !1!clicks|views          all topics that do not
/consumers/<group>/ids/<id>                 {"version":1,"subscription":{"clicks":2},"pattern":"static",
                                             "timestamp":"..."}      0.8: or "white_list", "black_list"
/consumers/<group>/owners/<topic>/<partition>    <id>-<stream>       the thread that consumes it

See [kafka-0.7: Consumer registry]. An id is `<group>_<host>-<ms>-<8 hex>`. All of these nodes are ephemeral.

A filter is a regular expression of Java. As in genuine consumers it must match a whole name, a comma stands for |, and
blanks and outer quotes are removed. Python's expressions mean the same, except for Java's own character classes.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.zookeeper.node_format import NodeFormat
from kafka_io.zookeeper.node_values import NodeObject, compact_json, malformed, shown, text_of
from kafka_io.zookeeper.paths import CONSUMERS

MAX_STREAMS = 10_000
_MAX_VALUE_BYTES = 2**20
_FILTER_07 = re.compile(r"(?P<mark>[*!])(?P<streams>[0-9]{1,5})(?P=mark)(?P<regex>.*)", re.DOTALL)
_STATIC, _WHITE, _BLACK = "static", "white_list", "black_list"
_MARKS = {"*": _WHITE, "!": _BLACK}


def ids_path(group: str) -> str:
    """The parent of the nodes of the group's members."""
    return f"{CONSUMERS}/{group}/ids"


def owner_path(group: str, partition: TopicPartition) -> str:
    """The node that names the consumer thread of a partition."""
    return f"{CONSUMERS}/{group}/owners/{partition.topic}/{partition.within_topic}"


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

    def value(self, node_format: NodeFormat, *, timestamp_ms: int) -> bytes:
        """The value of the member's node for this subscription."""
        if node_format is NodeFormat.JSON:
            return _json(self.topics, _STATIC, timestamp_ms)
        inside = ", ".join(f"{json.dumps(topic)}: {streams}" for topic, streams in self.topics.items())
        return f"{{ {inside} }}".encode()


@dataclass(frozen=True, slots=True)
class FilterSubscription:
    """A subscription to all topics that a filter allows. `pattern` is `white_list` or `black_list`."""

    regex: re.Pattern[str]
    pattern: str
    streams: int

    @classmethod
    def of(cls, raw: str, pattern: str, streams: int) -> Self:
        """The subscription for a filter as a user writes it.

        Raises:
            ValueError: the filter is not a regular expression.
        """
        text = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            return cls(re.compile(text), pattern, streams)
        except re.error as error:
            raise ValueError(f"the filter {shown(text)} is not a regular expression: {error}") from error

    def streams_of(self, topic: str) -> int:
        """The number of streams that consume the topic."""
        allowed = (self.regex.fullmatch(topic) is None) == (self.pattern == _BLACK)
        return self.streams if allowed else 0

    def wanted(self, names: Iterable[str]) -> list[str]:
        """The subscribed topics among `names`."""
        return sorted(name for name in names if self.streams_of(name))

    def value(self, node_format: NodeFormat, *, timestamp_ms: int) -> bytes:
        """The value of the member's node for this subscription."""
        if node_format is NodeFormat.JSON:
            return _json({self.regex.pattern: self.streams}, self.pattern, timestamp_ms)
        mark = next(mark for mark, pattern in _MARKS.items() if pattern == self.pattern)
        return f"{mark}{self.streams}{mark}{self.regex.pattern}".encode()


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
    node = NodeObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES)
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


def assign(partitions: Iterable[BrokerPartition], threads: Iterable[str]) -> dict[str, tuple[BrokerPartition, ...]]:
    """Assign the partitions of a topic to the threads that consume it [kafka-0.7: Rebalancing].

    The order of both arguments does not matter. Every member computes the same assignment from ZooKeeper, so the order
    of partitions and threads must be that of the genuine consumers: texts are compared as in Java, and
    broker-partitions of 0.7 are compared as texts ("10-0" before "2-0"), later ones as numbers.

    Each thread gets one contiguous range. If the partitions cannot be divided evenly, the first threads get one more. A
    published sample program computes the start of later ranges wrongly in that case, so it must not be copied.
    """
    ordered = sorted(set(partitions), key=_partition_order)
    ordered_threads = sorted(set(threads), key=java_order)
    if not ordered_threads:
        return {}
    size, extras = divmod(len(ordered), len(ordered_threads))
    starts = [index * size + min(index, extras) for index in range(len(ordered_threads) + 1)]
    return {thread: tuple(ordered[starts[i] : starts[i + 1]]) for i, thread in enumerate(ordered_threads)}


def java_order(text: str) -> bytes:
    """The key by which Java sorts texts: by their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def _partition_order(partition: BrokerPartition) -> tuple[int, str]:
    return (partition.partition, "") if partition.broker is None else (0, str(partition))


def _json(counts: Mapping[str, int], pattern: str, timestamp_ms: int) -> bytes:
    return compact_json(
        {"version": 1, "subscription": dict(counts), "pattern": pattern, "timestamp": str(timestamp_ms)}
    )
