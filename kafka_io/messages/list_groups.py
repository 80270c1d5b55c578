"""ListGroups: all groups that a broker coordinates. The cluster's groups are those of all its brokers."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Int16, Int32, String


@struct
class ListedGroup:
    """One group."""

    group_id: String
    protocol_type: String
    group_state: String = wire(since=4, default="", ignorable=True)  # KIP-518
    group_type: String = wire(since=5, default="", ignorable=True)  # KIP-848: classic or consumer


@struct
class ListGroupsResponse:
    """The groups of this broker."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    error_code: Int16
    groups: tuple[ListedGroup, ...]


@struct
class ListGroupsRequest(Request[ListGroupsResponse]):
    """Which states and types of groups to list; empty is all."""

    API: ClassVar = Api(key=16, name="ListGroups", versions=(0, 5), flexible_from=3, answer=ListGroupsResponse)

    states_filter: tuple[String, ...] = wire(since=4, default=())  # KIP-518
    types_filter: tuple[String, ...] = wire(since=5, default=())  # KIP-848
