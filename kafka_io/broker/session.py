"""One client of a 0.7 broker: answers go out in the order of the requests."""

import socket
from collections.abc import Callable
from typing import Any

from kafka_io.broker.client_session import ClientSession
from kafka_io.broker.fetch import fetch, multifetch
from kafka_io.broker.logs import Logs
from kafka_io.broker.offsets import offsets
from kafka_io.broker.produce import multiproduce, produce
from kafka_io.broker.reply import Reply, send
from kafka_io.v07.conversation import ServerConversation
from kafka_io.v07.messages import AnyRequest, Fetch, MultiFetch, MultiProduce, Offsets, Produce

APIS: dict[type[AnyRequest], Callable[[Any, Logs], Reply]] = {
    Produce: produce,
    Fetch: fetch,
    MultiFetch: multifetch,
    MultiProduce: multiproduce,
    Offsets: offsets,
}


class Session(ClientSession):
    """Serves one socket in the 0.7 dialect."""

    def __init__(self, client: socket.socket, logs: Logs) -> None:
        super().__init__(client, send_timeout_ms=logs.config.send_timeout_ms)
        self._logs = logs
        self._conversation = ServerConversation(logs.config.max_request_bytes)

    def _step(self) -> bool:
        count = self._client.recv_into(self._conversation.space())
        request = self._conversation.filled(count) if count else None
        if request is not None:
            send(self._client, APIS[type(request)](request, self._logs))
        return count > 0
