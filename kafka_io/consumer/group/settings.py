"""The settings of a group member: its timeouts, and its preferred assignors."""

from dataclasses import dataclass

from kafka_io.consumer.group.assignors import COOPERATIVE_STICKY, RANGE, Assignor


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How one member takes part in a group. The defaults are Java's, except for the session timeout.

    Args:
        group: the group's name.
        instance_id: the name of a static member, from 2.3 on (KIP-345). A static member that returns within the session
            timeout gets its partitions back without a rebalance.
        session_timeout_s: the coordinator removes a member that sends no heartbeat for this time. Brokers of 0.9 allow
            at most 30 s; Java's default is 45 s.
        heartbeat_s: the interval between heartbeats.
        max_poll_s: a member that does not poll for this time leaves the group. In a rebalance the other members wait
            for it no longer than this.
        refresh_s: how often new topics and partitions are looked for.
        assignors: in order of preference. If all are cooperative, members keep their partitions during a rebalance.

    Raises:
        ValueError: a time is not allowed, or there is no assignor.

    >>> from kafka_io.consumer.group.settings import GroupSettings
    >>> [assignor.name for assignor in GroupSettings(group="readers").assignors]
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
            raise ValueError(f"times must be above 0, and heartbeat_s below session_timeout_s: {self}")
        names = [assignor.name for assignor in self.assignors]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"name at least one assignor, and each only once, not {names}")

    @property
    def cooperative(self) -> bool:
        """Whether members keep their partitions during a rebalance (KIP-429)."""
        return all(assignor.cooperative for assignor in self.assignors)
