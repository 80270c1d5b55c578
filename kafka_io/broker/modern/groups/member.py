"""A member of a group, and what it is told when a generation begins."""

from dataclasses import dataclass

from kafka_io.messages.join_group import JoinGroupProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """Who wants to be a member, and what it brings."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_s: float
    rebalance_timeout_s: float
    protocol_type: str
    protocols: tuple[JoinGroupProtocol, ...]

    def speaks(self, protocol: str) -> bool:
        """Whether it knows this way to share out work."""
        return any(one.name == protocol for one in self.protocols)

    def metadata(self, protocol: str) -> bytes:
        """What it says of itself for this protocol."""
        return next((bytes(one.metadata) for one in self.protocols if one.name == protocol), b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A generation, as one member is told of it; `members` are named to the leader alone."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[Joining, ...]


@dataclass(slots=True)
class Member:
    """A member while the group has it. It waits for the next generation while `is_waiting`."""

    about: Joining
    deadline_s: float
    is_waiting: bool = False
    joined: Joined | None = None
    assignment: bytes = b""
