"""A member of a group: what it sends to join, and what it receives when a generation begins."""

from dataclasses import dataclass

from kafka_io.messages.join_group import JoinGroupProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAttempt:
    """What a client sends to join a group. The member id is empty at the first time."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_s: float
    rebalance_timeout_s: float
    protocol_type: str
    protocols: tuple[JoinGroupProtocol, ...]

    def supports(self, protocol: str) -> bool:
        """Whether the member knows this protocol, a strategy to assign the partitions."""
        return any(candidate.name == protocol for candidate in self.protocols)

    def metadata(self, protocol: str) -> bytes:
        """What the member sends to the leader for this protocol."""
        return next((bytes(candidate.metadata) for candidate in self.protocols if candidate.name == protocol), b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutcome:
    """A new generation, as it is sent to one member. Only the leader receives the list of the members."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[JoinAttempt, ...]


@dataclass(slots=True)
class BrokerGroupMember:
    """A member of a group. `is_waiting` while its JoinGroup request waits for the next generation."""

    attempt: JoinAttempt
    deadline_s: float
    is_waiting: bool = False
    outcome: JoinOutcome | None = None
    assignment: bytes = b""
