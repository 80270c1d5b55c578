"""A producer's aborted transaction ends with its abort marker, and with nothing else."""

import struct

import pytest

from kafka_io.errors import NOWHERE, Corrupt
from kafka_io.records.transactions import AbortedTransactions

ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)


def test_only_an_abort_marker_ends_an_aborted_transaction() -> None:  # fault G13
    aborted = AbortedTransactions([(7, 10)])
    assert not aborted.covers(7, 9)
    assert aborted.covers(7, 10)
    for kind in (COMMIT, struct.pack(">hh", 0, 2)):
        aborted.end(7, kind, NOWHERE)
        assert aborted.covers(7, 11)
    aborted.end(7, ABORT, NOWHERE)
    assert not aborted.covers(7, 12)


def test_a_marker_of_one_producer_ends_no_transaction_of_another() -> None:
    aborted = AbortedTransactions([(7, 10), (8, 10)])
    assert aborted.covers(7, 10)
    aborted.end(8, ABORT, NOWHERE)
    assert aborted.covers(7, 11)


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_marker_without_its_key_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(Corrupt, match="without the key"):
        AbortedTransactions([(7, 10)]).end(7, key, NOWHERE)
