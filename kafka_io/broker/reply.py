"""What goes back to a client: bytes made here and regions of the log, in their order; nothing at all for a produce."""

import os
import socket

from kafka_io.broker.log.segment import Region
from kafka_io.errors import TooLarge, Truncated
from kafka_io.wire.primitives import int32

Reply = tuple[bytes | Region, ...]

NO_REPLY: Reply = ()
_INT32_MAX = 2**31 - 1


def size_of(reply: Reply) -> int:
    """Bytes a reply announces. A region of a negative size counts as such: so does a genuine broker (facts, 2)."""
    return sum(part.count if isinstance(part, Region) else len(part) for part in reply)


def size_field(size: int) -> bytes:
    """`size` as it stands before an answer.

    Raises:
        TooLarge: the answer is past what an int32 can say; MULTIFETCH can ask for that.
    """
    if size > _INT32_MAX:
        raise TooLarge(f"an answer of {size} bytes, a frame holds {_INT32_MAX}: ask for less at once")
    return int32(size)


def send(client: socket.socket, reply: Reply) -> None:
    """Put `reply` on the wire; what is log goes from the file to the socket inside the kernel (seed 003, 5.2).

    Raises:
        OSError: the client is gone, or took nothing for the send timeout of the socket.
        Truncated: a segment file is shorter than it was when it was read.
    """
    parts = [part for part in reply if size_of((part,)) > 0]
    for index, part in enumerate(parts):
        if isinstance(part, Region):
            _send_region(client, part)
        else:
            # MSG_MORE keeps a header and the region behind it in one packet, in spite of TCP_NODELAY.
            client.sendall(part, socket.MSG_MORE if index + 1 < len(parts) else 0)


def _send_region(client: socket.socket, region: Region) -> None:
    at, end = region.position, region.position + region.count
    while at < end:
        sent = os.sendfile(client.fileno(), region.segment.descriptor, at, end - at)
        if sent == 0:
            raise Truncated(f"{region.segment.path.name} ends at byte {at}, {end - at} bytes short")
        at += sent
