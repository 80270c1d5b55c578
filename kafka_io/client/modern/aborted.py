"""The transactions that a read-committed fetch leaves out (KIP-98)."""

from kafka_io.messages.fetch import FetchPartitionResponse
from kafka_io.records.transactions import AbortedRange


def aborted_ranges(answer: FetchPartitionResponse) -> tuple[AbortedRange, ...]:
    """As decoders take them; none before v4, or in an answer to another fetch."""
    return tuple((one.producer_id, one.first_offset) for one in answer.aborted_transactions or ())
