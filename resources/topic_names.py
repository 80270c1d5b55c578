"""Topic names as names of tables and of Dagster partitions: one reversible encoding (X03, O06).

Small letters, digits, `-`, `_` and `.` stand for themselves, but not a dot beside a dot or at an end, nor `_` in front
(readers hide such folders). Every other byte of the UTF-8 name is `~` and two hex digits, capitals too: two topics
never share a folder where a file system takes `A` for `a`.
"""

import re

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_ESCAPE = "~"
_ESCAPED = re.compile(rb"~([0-9a-f]{2})")
_MOST_PER_FOLDER = 200


def encode(topic: str) -> str:
    """The name that stands for `topic`; never empty, `.`, `..` or hidden."""
    data = topic.encode()
    return "".join(chr(byte) if _stands(data, at) else f"{_ESCAPE}{byte:02x}" for at, byte in enumerate(data))


def _stands(data: bytes, at: int) -> bool:
    if data[at] == ord("_"):
        return at > 0
    if data[at] == ord("."):
        return 0 < at < len(data) - 1 and data[at - 1] != ord(".")
    return data[at] in _PLAIN


def decode(name: str) -> str:
    """The topic that `name` stands for.

    Raises:
        ValueError: no topic is encoded so.
    """
    data = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), name.encode())
    topic = data.decode()
    if encode(topic) != name:
        raise ValueError(f"{name!r} stands for no topic")
    return topic


def folders(topic: str) -> list[str]:
    """The encoded name cut into folder names that any file system takes (255 bytes).

    A folder that goes on in the next ends with a bare `~`, which no encoded name does.
    """
    name = encode(topic)
    parts = [name[at : at + _MOST_PER_FOLDER] for at in range(0, len(name), _MOST_PER_FOLDER)]
    return [part + _ESCAPE for part in parts[:-1]] + parts[-1:]


def goes_on(folder: str) -> bool:
    """Whether an encoded name goes on in a folder below this one."""
    return folder.endswith(_ESCAPE)


def decode_folders(parts: list[str]) -> str:
    """The inverse of `folders`.

    Raises:
        ValueError: no topic has such folders.
    """
    return decode("".join([*(part.removesuffix(_ESCAPE) for part in parts[:-1]), parts[-1]]))
