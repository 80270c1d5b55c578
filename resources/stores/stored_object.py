"""An object of a store, or a file of a folder: what the clients of both return."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object: its path, the mark that the store gives to its content, and the content if it was read."""

    path: str
    e_tag: str | None = None
    content: bytes = field(default=b"", repr=False)
