"""Paths and values of the 0.7 registry as pure text: facts, 6; seed 003. Nothing here knows ZooKeeper.

/brokers/ids/<broker>             `<creator>:<host>:<port>`, where creator is `<host>-<ms>`
/brokers/topics/<topic>/<broker>  the number of partitions on that broker
"""

import re
from ipaddress import IPv6Address

from kafka_io.errors import NodeMalformed, Unsupported
from kafka_io.model import Broker, BrokerPartition

BROKERS = "/brokers"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"

MOST_PARTITIONS = 100_000
_LONGEST_TOPIC_NAME = 255
_LONGEST_VALUE = 1024
_LARGEST_ID = 2**31 - 1
_LARGEST_PORT = 2**16 - 1
_SHOWN = 60

# A genuine broker splits the value at each colon into three parts, so it can name no IPv6 host. One is read where the
# creator is `<host>-<ms>`: it ends at the first `-<ms>:`, as no host has a dash, digits and a colon in a row
# (`fe80::1-1324306324402:fe80::1:9092`). After any other creator there must be the two genuine parts, for
# `2001:db8::1:9092` is no broker at `db8::1`. The port is what follows the last colon.
_CREATOR = re.compile(r".+?-[0-9]+:(?=.*:)|[^:]*:(?=[^:]*:[^:]*\Z)")
_HOST = re.compile(r"[\w.:%-]+")
_ILLEGAL_IN_TOPIC = re.compile("[/\\x00-\\x1f\\x7f-\\x9f\\ud800-\\uf8ff\\ufff0-\\uffff]")
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,9}")


def broker_path(broker_id: int) -> str:
    """Where a broker's address is registered."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """The node that makes a topic exist; it outlives the brokers."""
    return f"{TOPICS}/{topic}"


def share_path(topic: str, broker_id: int) -> str:
    """Where a broker's number of partitions of a topic is registered."""
    return f"{TOPICS}/{topic}/{broker_id}"


def check_topic_name(name: str) -> None:
    """`name` is one that a 0.7 broker and ZooKeeper take (facts, 3; Z11).

    Raises:
        NodeMalformed: it is not.
    """
    characters = len(name.encode("utf-16-le", "surrogatepass")) // 2  # as Java counts
    if not 0 < characters <= _LONGEST_TOPIC_NAME:
        raise NodeMalformed(f"a topic name of {characters} characters: 1 to {_LONGEST_TOPIC_NAME} are allowed")
    if name in {".", ".."} or _ILLEGAL_IN_TOPIC.search(name):
        raise NodeMalformed(f"the topic name {name!r} is a path or has characters that no topic may have")


def parse_broker_07(path: str, data: bytes) -> Broker:
    """The broker registered at `path`; an IPv6 host may stand with or without brackets, and is given without.

    Seed 003 writes `host:port`; a genuine broker writes `creator:host:port`, and so it must be.

    Raises:
        NodeMalformed: the path or the value cannot be a broker's.
        Unsupported: the value is JSON, so the broker is of Kafka 0.8 or later.
    """
    broker_id = _broker_id(path)
    text = _text(path, data)
    if text.lstrip().startswith("{"):
        raise Unsupported(f"the registry node {path!r} holds JSON: the broker is of Kafka 0.8 or later")
    creator = _CREATOR.match(text)
    if creator is None:
        raise _malformed(path, f"{text[:_SHOWN]!r} is not creator:host:port")
    host, _, port = text[creator.end() :].rpartition(":")
    return Broker(broker_id, _host(path, host), _number(path, port, least=1, most=_LARGEST_PORT))


def format_broker_07(broker: Broker, creator: str) -> bytes:
    """The value a broker registers; `creator` is `<host>-<ms>`, unlike that of any broker before it."""
    return f"{creator}:{broker.address}".encode()


def parse_topic_share(path: str, data: bytes) -> tuple[BrokerPartition, ...]:
    """The broker-partitions that the node at `path` stands for, in order; at most MOST_PARTITIONS.

    Raises:
        NodeMalformed: the path or the value cannot be a share.
        Unsupported: the node is one of Kafka 0.8 or later.
    """
    if path.endswith("/partitions"):
        raise Unsupported(f"the registry node {path!r} is of Kafka 0.8 or later")
    broker_id = _broker_id(path)
    count = _number(path, _text(path, data), least=0, most=MOST_PARTITIONS)
    return tuple(BrokerPartition(broker_id, partition) for partition in range(count))


def format_topic_share(partitions: int) -> bytes:
    """The value a broker registers for a topic."""
    return str(partitions).encode()


def _broker_id(path: str) -> int:
    return _number(path, path.rpartition("/")[2], least=0, most=_LARGEST_ID)


def _number(path: str, text: str, *, least: int, most: int) -> int:
    if not _DECIMAL.fullmatch(text) or not least <= int(text) <= most:
        raise _malformed(path, f"{text[:_SHOWN]!r} is not a number from {least} to {most}")
    return int(text)


def _host(path: str, text: str) -> str:
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if _HOST.fullmatch(host) and (":" not in host or _is_ipv6(host)):
        return host
    raise _malformed(path, f"{text[:_SHOWN]!r} is not a host")


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _text(path: str, data: bytes) -> str:
    if len(data) > _LONGEST_VALUE:
        raise _malformed(path, f"its value has {len(data)} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _malformed(path, f"its value {data[:_SHOWN]!r} is not UTF-8") from error


def _malformed(path: str, fault: str) -> NodeMalformed:
    return NodeMalformed(f"the registry node {path!r} is malformed: {fault}")
