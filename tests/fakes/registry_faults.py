"""Faults of an embedded schema registry: errors, other bytes, silence.

registry.inject(answers(500), times=2)
registry.inject(not_found, path="/schemas/ids/7")      # the id appears late
"""

from dataclasses import replace

from kafka_io.testing.schema_registry.faults import Client, Fault
from kafka_io.testing.schema_registry.replies import RegistryReply


def sends(body: bytes, status: int = 200, **headers: str) -> Fault:
    """Send another body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _, client: client.send(RegistryReply(status=status, body=body, headers=named).encode())


def answers(status: int, code: int | None = None, message: str = "a test wants it so", **headers: str) -> Fault:
    """Send an error. An underscore in the name of a header stands for a dash."""
    error = RegistryReply.of_error(status, status if code is None else code, message)
    return sends(error.body, status, **headers)


not_found = answers(404, 40403, "Schema not found")
"""Deny that the id exists."""


def sends_raw(data: bytes) -> Fault:
    """Send bytes that need not be HTTP."""
    return lambda _, client: client.send(data)


def stalls(_: RegistryReply, client: Client) -> None:
    """Send nothing until the registry stops."""
    client.stopping.wait()


def drips(every_s: float) -> Fault:
    """Send the reply byte by byte, with a pause after each byte."""

    def fault(reply: RegistryReply, client: Client) -> None:
        for byte in reply.encode():
            client.send(bytes((byte,)))
            if client.stopping.wait(every_s):
                return

    return fault


def ends_after(count: int) -> Fault:
    """Send only the first `count` bytes of the reply; a negative number leaves out bytes at its end."""
    return lambda reply, client: client.send(reply.encode()[:count])


def pads(size: int) -> Fault:
    """Send the reply with white space behind its JSON, so that its body has `size` bytes."""
    return lambda reply, client: client.send(replace(reply, body=reply.body.ljust(size)).encode())
