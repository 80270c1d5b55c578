"""Free ports on loopback."""

import socket
from contextlib import ExitStack
from random import SystemRandom

HOST = "127.0.0.1"
# Outgoing connections use higher ports, so the port of a stopped broker stays free until it starts again.
_PORTS = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """`count` different ports on which no process listens now.

    The random numbers are not from the generator that pytest-randomly seeds: otherwise two test processes would choose
    the same ports at the same time.
    """
    ports: list[int] = []
    with ExitStack() as probes:
        for port in SystemRandom().sample(_PORTS, len(_PORTS)):
            if len(ports) == count:
                return ports
            try:
                probes.enter_context(socket.create_server((HOST, port)))
            except OSError:  # the port is in use
                continue
            ports.append(port)
    raise OSError(f"fewer than {count} ports are free")
