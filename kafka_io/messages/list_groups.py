"""ListGroups: all groups that a broker coordinates. The cluster's groups are those of all its brokers."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, Int32, String


class ListedGroup(Struct):
    """One group."""

    group_id: String
    protocol_type: String
    group_state: String = wire(since=4, default="", ignorable=True)  # KIP-518
    group_type: String = wire(since=5, default="", ignorable=True)  # KIP-848: classic or consumer


class ListGroupsResponse(Struct):
    """The groups of this broker."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16
    groups: tuple[ListedGroup, ...]


class ListGroupsRequest(Request[ListGroupsResponse], key=16, versions=(0, 5), flexible_from=3):
    """Which states and types of groups to list; empty is all."""

    states_filter: tuple[String, ...] = wire(since=4, default=())  # KIP-518
    types_filter: tuple[String, ...] = wire(since=5, default=())  # KIP-848
