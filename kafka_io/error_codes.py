"""Broker error codes as rows, a table per dialect; `check` turns a row into its exception."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_io.errors import BrokerError, OffsetOutOfRange, Where


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code with its name on the wire, what it says, and the exception it becomes."""

    code: int
    name: str
    sentence: str
    error: type[BrokerError] = BrokerError


# Seed 000, section "Response Header"; codes 2 and 4 are never sent by a genuine 0.7.2 broker (facts, 2).
V07: Mapping[int, ErrorCode] = {
    row.code: row
    for row in (
        ErrorCode(-1, "Unknown", "the broker refused the request, as it does for a topic name that is not legal"),
        ErrorCode(1, "OffsetOutOfRange", "the broker's log does not hold this offset", OffsetOutOfRange),
        ErrorCode(2, "InvalidMessage", "the broker found a message that fails its checksum"),
        ErrorCode(3, "WrongPartition", "the broker has no such partition"),
        ErrorCode(4, "InvalidFetchSize", "the fetch size is smaller than the message"),
    )
}


def check(code: int, where: Where, table: Mapping[int, ErrorCode] = V07) -> None:
    """Raise what `code` stands for; 0 is success, a number not in the table keeps its number.

    Raises:
        BrokerError: for every code but 0.
    """
    if code == 0:
        return
    row = table.get(code) or ErrorCode(code, "?", "the broker answered with an error code nobody knows")
    raise row.error(f"{row.sentence} (error {code} {row.name})", where, code)
