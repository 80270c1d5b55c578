"""What a member of a group promises to its coordinator, and how it wants to share out partitions."""

from dataclasses import dataclass

from kafka_io.client.group.assignors import COOPERATIVE_STICKY, RANGE, Assignor


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How one member takes part in a group. Names and defaults are Java's, but for the session.

    Args:
        group: its name.
        instance_id: the static name of this member, from 2.3 on (KIP-345): one that comes again with it within the
            session gets what it had, and nobody else notices.
        session_timeout_s: for so long the member may be silent. 30 s is the most that brokers of 0.9 allow; Java's
            45 s is above that.
        heartbeat_s: how often it says that it is alive.
        max_poll_s: a member that does not poll for so long leaves; other members wait for it no longer than that.
        refresh_s: how often it looks for new topics and partitions.
        assignors: in order of preference. Partitions are kept through a rebalance if all of them are cooperative.

    Raises:
        ValueError: times that cannot be, or no assignor.

    >>> from kafka_io.client.group.settings import GroupSettings
    >>> [one.name for one in GroupSettings(group="readers").assignors]
    ['range', 'cooperative-sticky']
    """

    group: str
    instance_id: str | None = None
    session_timeout_s: float = 30.0
    heartbeat_s: float = 3.0
    max_poll_s: float = 300.0
    refresh_s: float = 300.0
    assignors: tuple[Assignor, ...] = (RANGE, COOPERATIVE_STICKY)

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_s < self.session_timeout_s or min(self.max_poll_s, self.refresh_s) <= 0:
            raise ValueError(f"times must be 0 < heartbeat_s < session_timeout_s, and above 0, not {self}")
        names = [one.name for one in self.assignors]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"a group has one assignor at least, and each once, not {names}")

    @property
    def cooperative(self) -> bool:
        """Whether partitions are kept while the group shares them out anew (KIP-429)."""
        return all(one.cooperative for one in self.assignors)
