"""Topic names as names of folders and of Dagster partitions: one reversible encoding (faults X03, O06).

Lower-case letters, digits, `-`, `_` and `.` stay as they are. Every other byte of the UTF-8 name becomes `~` and two
hex digits. Three rules avoid folder names with another meaning:
- capitals are encoded, because some file systems take `A` for `a`, and two topics must not share a folder;
- a dot next to a dot, or at the beginning or end, is encoded: `.` and `..` are not folders of their own;
- `_` at the beginning is encoded, because Delta readers hide such folders.
"""

import re

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_ESCAPE = "~"
_ESCAPED = re.compile(rb"~([0-9a-f]{2})")
_MAX_PER_FOLDER = 200


def encode(topic: str) -> str:
    """The encoded name. It is never empty, `.`, `..` or hidden.

    Raises:
        ValueError: the name is empty: its folder would be the one that contains all tables (fault H04).
    """
    if not topic:
        raise ValueError("a topic has no name")
    data = topic.encode()
    return "".join(chr(byte) if _is_plain(data, index) else f"{_ESCAPE}{byte:02x}" for index, byte in enumerate(data))


def _is_plain(data: bytes, index: int) -> bool:
    if data[index] == ord("_"):
        return index > 0
    if data[index] == ord("."):
        return 0 < index < len(data) - 1 and data[index - 1] != ord(".")
    return data[index] in _PLAIN


def decode(name: str) -> str:
    """The inverse of `encode`.

    Raises:
        ValueError: `name` is not the encoded name of a topic.
    """
    data = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), name.encode())
    topic = data.decode()
    if encode(topic) != name:
        raise ValueError(f"{name!r} is not the encoded name of a topic")
    return topic


def folders(topic: str) -> list[str]:
    """The encoded name, split into folder names that every file system accepts (255 bytes).

    All folders but the last end with a bare `~`, which no encoded name does.
    """
    name = encode(topic)
    parts = [name[start : start + _MAX_PER_FOLDER] for start in range(0, len(name), _MAX_PER_FOLDER)]
    return [part + _ESCAPE for part in parts[:-1]] + parts[-1:]


def continues(folder: str) -> bool:
    """Whether the encoded name continues in a folder below this one."""
    return folder.endswith(_ESCAPE)


def decode_folders(parts: list[str]) -> str:
    """The inverse of `folders`.

    Raises:
        ValueError: the folders are not those of a topic.
    """
    return decode("".join([*(part.removesuffix(_ESCAPE) for part in parts[:-1]), parts[-1]]))
