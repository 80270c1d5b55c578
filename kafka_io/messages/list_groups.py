"""ListGroups: asks for the groups that a broker coordinates. Each broker of the cluster lists its own groups."""

from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import MANY_ITEMS, Int16, String


class ListedGroup(Struct):
    """A group."""

    group_id: String
    protocol_type: String
    group_state: String = wire(since=4, default="", ignorable=True)  # KIP-518
    group_type: String = wire(since=5, default="", ignorable=True)  # KIP-848: classic or consumer


class ListGroupsResponse(ThrottledAnswer, since=1):
    """The groups of this broker."""

    error_code: Int16
    groups: tuple[ListedGroup, ...] = wire(max_items=MANY_ITEMS)


class ListGroupsRequest(Request[ListGroupsResponse], key=16, versions=(0, 5), flexible_from=3):
    """The states and types of the groups to list; empty filters match all groups."""

    states_filter: tuple[String, ...] = wire(since=4, default=())  # KIP-518
    types_filter: tuple[String, ...] = wire(since=5, default=())  # KIP-848
