"""Who commits the offsets of a group."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A member of a group in one of its generations; `instance` is the name of a static one (KIP-345).

    The default is nobody: a group takes offsets from outside while it has no members.

    >>> Membership().generation
    -1
    """

    generation: int = -1
    id: str = ""
    instance: str | None = None


NOBODY = Membership()
