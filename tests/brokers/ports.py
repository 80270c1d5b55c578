"""Ports of loopback."""

import socket
from contextlib import ExitStack
from random import SystemRandom

HOST = "127.0.0.1"
# Systems take the ports of outgoing connections from above these. So a broker that stops finds its port free again.
_PORTS = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """`count` different ports on which nobody listens now.

    They are random, and not from the generator that pytest-randomly seeds alike in every test: otherwise two processes
    would choose the same ports at the same time.
    """
    ports: list[int] = []
    with ExitStack() as probes:
        for port in SystemRandom().sample(_PORTS, len(_PORTS)):
            if len(ports) == count:
                return ports
            try:
                probes.enter_context(socket.create_server((HOST, port)))
            except OSError:  # somebody listens there
                continue
            ports.append(port)
    raise OSError(f"fewer than {count} ports are free")
