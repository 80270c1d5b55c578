"""FindCoordinator: this broker, whatever the group or transaction."""

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.messages.find_coordinator import (
    GROUP,
    TRANSACTION,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_MANY_SINCE = 4
_TYPES = (GROUP, TRANSACTION)
_NOBODY = -1


def find_coordinator(request: FindCoordinatorRequest, node: Node, caller: Caller) -> FindCoordinatorResponse:
    """Who keeps each key."""
    broker = node.broker
    if request.key_type in _TYPES:
        code, node_id, host, port = Code.NONE, broker.id, broker.host, broker.port
    else:
        code, node_id, host, port = Code.INVALID_REQUEST, _NOBODY, "", _NOBODY
    if caller.version < _MANY_SINCE:
        return FindCoordinatorResponse(error_code=code, node_id=node_id, host=host, port=port)
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=code)
            for key in request.coordinator_keys
        )
    )
