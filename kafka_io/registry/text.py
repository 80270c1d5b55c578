"""Checks parts of a node's name and value, for registries of every generation. Each error names the node."""

import re
from ipaddress import IPv6Address

from kafka_io.errors import NodeMalformed

_MAX_ID = 2**31 - 1
_MAX_PORT = 2**16 - 1
_SHOWN = 60

_HOST = re.compile(r"[\w.:%-]+")
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,9}")


def text_of(path: str, data: bytes, *, max_bytes: int) -> str:
    """The value of the node at `path` as text, of at most `max_bytes` bytes.

    Raises:
        NodeMalformed: the value is longer, or is not UTF-8. All functions of this module raise it for what they check.
    """
    if len(data) > max_bytes:
        raise malformed(path, f"its value has {len(data)} bytes, more than {max_bytes}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise malformed(path, f"its value {data[:_SHOWN]!r} is not UTF-8") from error


def number(path: str, text: str, *, min_value: int, max_value: int) -> int:
    """A plain decimal number, without signs or leading zeros."""
    if not _DECIMAL.fullmatch(text) or not min_value <= int(text) <= max_value:
        raise malformed(path, f"{text[:_SHOWN]!r} is not a number from {min_value} to {max_value}")
    return int(text)


def broker_id(path: str) -> int:
    """The broker id, which is the last name of the path."""
    return number(path, path.rpartition("/")[2], min_value=0, max_value=_MAX_ID)


def port(path: str, text: str) -> int:
    """A port number from 1 to 65535."""
    return number(path, text, min_value=1, max_value=_MAX_PORT)


def host(path: str, text: str) -> str:
    """A host name or address. An IPv6 address may have brackets, which are removed."""
    name = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if _HOST.fullmatch(name) and (":" not in name or _is_ipv6(name)):
        return name
    raise malformed(path, f"{shown(text)} is not a host")


def shown(value: object) -> str:
    """A value for an error message: one short line, without the content of lists and objects."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return repr(value[:_SHOWN] if isinstance(value, str) else value)[: 2 * _SHOWN]


def malformed(path: str, fault: str) -> NodeMalformed:
    """The error for a node that cannot be parsed."""
    return NodeMalformed(f"the registry node {path!r} is malformed: {fault}")


def _is_ipv6(name: str) -> bool:
    try:
        IPv6Address(name)
    except ValueError:
        return False
    return True
