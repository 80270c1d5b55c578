"""The identity of a group member, which commits of offsets carry."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembership:
    """A member of a group in one generation of the group; `instance` is the name of a static member (KIP-345).

    The default stands for no member: a group without members accepts offsets from outside.

    >>> GroupMembership().generation
    -1
    """

    generation: int = -1
    id: str = ""
    instance: str | None = None


NOBODY = GroupMembership()
