"""The addresses of the first brokers to connect to."""

import re

from kafka_io.model import Broker

BOOTSTRAP_ID = -1  # the id of a broker whose real id is not known yet
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\s:,\[\]]+)):(?P<port>[0-9]{1,5})")
_MAX_PORT = 65535


def parse_bootstrap(text: str) -> tuple[Broker, ...]:
    """The brokers at `host:port[,host:port]`, an IPv6 host in brackets; their ids are unknown.

    Raises:
        ValueError: a part is not an address.
    """
    return tuple(_parse(part.strip()) for part in text.split(","))


def _parse(text: str) -> Broker:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= _MAX_PORT:
        raise ValueError(f"{text!r} is not host:port")
    return Broker(BOOTSTRAP_ID, match["ipv6"] or match["host"], int(match["port"]))
