"""The addresses at which a cluster is first asked."""

import re

from kafka_io.model import Broker

BOOTSTRAP_ID = -1  # of a broker whose id is not known yet
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\s:,\[\]]+)):(?P<port>[0-9]{1,5})")
_MOST_PORT = 65535


def parse_bootstrap(text: str) -> tuple[Broker, ...]:
    """Brokers at `host:port[,host:port]`, an IPv6 host in brackets; their ids are not known.

    Raises:
        ValueError: an address that is none.
    """
    return tuple(_parse(part.strip()) for part in text.split(","))


def _parse(text: str) -> Broker:
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) <= _MOST_PORT:
        raise ValueError(f"{text!r} is not host:port")
    return Broker(BOOTSTRAP_ID, found["ipv6"] or found["host"], int(found["port"]))
