"""The listening socket of an embedded server leaves no client open, whatever the client does."""

import gc
import socket
import struct
import threading

import pytest

from kafka_io.testing.listener import SocketListener
from tests.fakes.tls import serving


@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "closed"])
def test_a_client_that_has_left_before_it_is_accepted_is_closed(*, is_reset: bool) -> None:
    listener = SocketListener("127.0.0.1", 0, name="test", tls=serving())
    served = threading.Event()
    try:
        client = socket.create_connection(("127.0.0.1", listener.port))
        if is_reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        listener.start(lambda _: served.set())
        with socket.create_connection(("127.0.0.1", listener.port)):
            assert served.wait(10)
    finally:
        listener.stop()
    gc.collect()  # a socket that nothing has closed is a ResourceWarning
