"""Parts of a node's name and value, checked; each fault names the node. Nothing here knows a generation."""

import re
from ipaddress import IPv6Address

from kafka_io.errors import NodeMalformed

_LARGEST_ID = 2**31 - 1
_LARGEST_PORT = 2**16 - 1
_SHOWN = 60

_HOST = re.compile(r"[\w.:%-]+")
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,9}")


def text_of(path: str, data: bytes, *, longest: int) -> str:
    """The value of the node at `path`, of at most `longest` bytes.

    Raises:
        NodeMalformed: it is longer, or not UTF-8. So do all functions here, for what they check.
    """
    if len(data) > longest:
        raise malformed(path, f"its value has {len(data)} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise malformed(path, f"its value {data[:_SHOWN]!r} is not UTF-8") from error


def number(path: str, text: str, *, least: int, most: int) -> int:
    """A plain decimal number, without signs or leading zeros."""
    if not _DECIMAL.fullmatch(text) or not least <= int(text) <= most:
        raise malformed(path, f"{text[:_SHOWN]!r} is not a number from {least} to {most}")
    return int(text)


def broker_id(path: str) -> int:
    """The last name of the path, which is a broker's id."""
    return number(path, path.rpartition("/")[2], least=0, most=_LARGEST_ID)


def port(path: str, text: str) -> int:
    """A port to connect to."""
    return number(path, text, least=1, most=_LARGEST_PORT)


def host(path: str, text: str) -> str:
    """A host name or address; an IPv6 one may stand with or without brackets, and is given without."""
    name = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if _HOST.fullmatch(name) and (":" not in name or _is_ipv6(name)):
        return name
    raise malformed(path, f"{shown(text)} is not a host")


def shown(value: object) -> str:
    """A value as an error shows it: in one short line, and never what is inside a list or an object."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return repr(value[:_SHOWN] if isinstance(value, str) else value)[: 2 * _SHOWN]


def malformed(path: str, fault: str) -> NodeMalformed:
    """The error about a node that does not parse."""
    return NodeMalformed(f"the registry node {path!r} is malformed: {fault}")


def _is_ipv6(name: str) -> bool:
    try:
        IPv6Address(name)
    except ValueError:
        return False
    return True
