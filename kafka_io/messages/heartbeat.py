"""Heartbeat: shows that a member of a group is alive. The answer says whether the group rebalances."""

from kafka_io.messages.shared import MemberOfGeneration, ThrottledAnswer
from kafka_io.wire.schema import Request
from kafka_io.wire.types import Int16


class HeartbeatResponse(ThrottledAnswer, since=1):
    """The error code if the group rebalances, or no longer has the member."""

    error_code: Int16


class HeartbeatRequest(Request[HeartbeatResponse], MemberOfGeneration, key=12, versions=(0, 4), flexible_from=4):
    """The member, and the generation of the group that it knows."""
