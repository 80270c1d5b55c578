"""The addresses of the first brokers to connect to."""

import re
from dataclasses import replace

from kafka_io.model import Broker

BOOTSTRAP_ID = -1  # the id of a broker whose real id is not known yet
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%[^\s,\[\]]+)?)\]|(?P<host>[^\s:,\[\]]+)):(?P<port>[0-9]{1,5})")
_ID = re.compile(r"(0|[1-9][0-9]{0,8}):(?=[^,]*:)")
_MAX_PORT = 65535


def parse_bootstrap(text: str) -> tuple[Broker, ...]:
    """The brokers at `host:port[,host:port]`, an IPv6 host in brackets; their ids are unknown.

    Raises:
        ValueError: a part is not an address.
    """
    return tuple(_parse(part.strip()) for part in text.split(","))


def parse_broker_list(text: str) -> tuple[Broker, ...]:
    """The brokers at `[id:]host:port[,[id:]host:port]`, as `broker.list` of 0.7 names them; an id can be unknown.

    Raises:
        ValueError: a part is neither an address nor an id and an address, or two brokers have one id.
    """
    brokers = tuple(_parse_with_id(part.strip()) for part in text.split(","))
    ids = [broker.id for broker in brokers if broker.id != BOOTSTRAP_ID]
    if ids and len(set(ids)) < len(brokers):
        raise ValueError(f"{text!r} does not give each broker an id of its own")
    return brokers


def _parse_with_id(text: str) -> Broker:
    match = _ID.match(text)
    return replace(_parse(text[match.end() :]), id=int(match[1])) if match else _parse(text)


def _parse(text: str) -> Broker:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
        raise ValueError(f"{text!r} is not host:port")
    return Broker(BOOTSTRAP_ID, match["ipv6"] or match["host"], int(match["port"]))
