"""The bytes that other clients wrote give what they were given. Run with the compiler off too."""

import pytest

from tests.kafka_io.records.decoding import NAMES, given, golden, oracle_rows, read, read_rows


@pytest.mark.parametrize("name", NAMES)
def test_messages_of_other_clients_are_read_as_they_were_given(name: str) -> None:
    assert read_rows(golden(name)) == given(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_reads_messages_of_other_clients_as_they_were_given(name: str) -> None:
    assert oracle_rows(golden(name)) == given(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_offset_is_read(name: str) -> None:
    (decoded,) = read(golden(name))
    assert decoded.next_offset == len(given(name))
    assert not decoded.gaps
