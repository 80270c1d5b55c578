"""FETCH and MULTIFETCH: a header, and bytes of the log as they lie there (facts, 1 to 3).

The size in the header is 2 + the bytes that follow. A negative `max_size` makes it 1 or negative and breaks the stream
for its client, as a genuine broker does; there is no code for it.
"""

from kafka_io.broker.log.segment import Region
from kafka_io.broker.logs import Logs
from kafka_io.broker.reply import Reply, size_field, size_of
from kafka_io.errors import BrokerError
from kafka_io.v07.messages import Fetch, MultiFetch
from kafka_io.wire.primitives import int16

_OK = int16(0)


def fetch(request: Fetch, logs: Logs) -> Reply:
    """`size | error | set`; a set that is not there, for whatever reason that is no error, is empty."""
    try:
        region = _read(request, logs)
    except BrokerError as error:
        return _frame(int16(error.code))
    return _frame(_OK, region) if region else _frame(_OK)


def multifetch(request: MultiFetch, logs: Logs) -> Reply:
    """`size | 0 | (size_i | error_i | set_i)*`: errors belong to the parts, the outer one is always 0."""
    parts = (part for each in request.fetches for part in fetch(each, logs))
    return _frame(_OK, *parts)


def _read(request: Fetch, logs: Logs) -> Region | None:
    log = logs.find(request.topic, request.partition)
    return None if log is None else log.read(request.offset, request.max_size)


def _frame(*parts: bytes | Region) -> Reply:
    return (size_field(size_of(parts)), *parts)
