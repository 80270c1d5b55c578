"""OFFSETS: where a fetch may start (facts, 4)."""

from kafka_io.broker.logs import Logs
from kafka_io.broker.reply import Reply
from kafka_io.v07.messages import EARLIEST_TIME, LATEST_TIME, Offsets, OffsetsAnswer

_OK = 0


def offsets(request: Offsets, logs: Logs) -> Reply:
    """Starts of segments, descending; a log that is not there yet starts and ends at 0.

    Raises:
        BrokerError: the topic is illegal or has no such partition. Here this closes the socket: only fetches are
            answered with codes (facts, 3).
        Corrupt: a negative number of offsets, which closes the socket as well.
    """
    log = logs.find(request.topic, request.partition)
    if log is not None:
        found = log.offsets_before(request.time, request.max_offsets)
    else:
        found = (0,) if request.time in {LATEST_TIME, EARLIEST_TIME} else ()
    return (OffsetsAnswer(_OK, found).encode(),)
