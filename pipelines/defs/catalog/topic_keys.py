"""Topic names as parts of asset keys: the name itself if Dagster accepts it, otherwise a readable form (fault O06).

Dagster makes the names of an op's outputs from asset keys. So a part of a key has only letters, digits, `.`, `_` and
`-`. Every other character becomes `_x20_`: its number in hexadecimal digits. A name that has such a form already gets
its underscore replaced in the same way, so two topics never have the same key.
"""

import re

_FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]|_(?=x[0-9a-f]+_)|^\.+$")


def key_name(topic: str) -> str:
    """The last part of the asset key of a topic.

    Raises:
        ValueError: the name is empty.
    """
    if not topic:
        raise ValueError("a topic has no name")
    return _FORBIDDEN.sub(lambda match: "".join(f"_x{ord(character):x}_" for character in match[0]), topic)


def identifier(name: str) -> str:
    """What Dagster makes of a part of a key in the names of outputs and inputs: `a.b` and `a_b` get the same one."""
    return name.replace("-", "_").replace(".", "_")
