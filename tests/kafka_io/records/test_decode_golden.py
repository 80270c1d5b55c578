"""The bytes that other clients wrote give what they were given. Run with the compiler off too."""

import pytest

from tests.kafka_io.records.decoding import NAMES, given, golden, oracle_rows, read, read_rows


@pytest.mark.parametrize("name", NAMES)
def test_what_another_client_wrote_is_read_as_it_was_given(name: str) -> None:
    assert read_rows(golden(name)) == given(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_reads_it_so_too(name: str) -> None:
    assert oracle_rows(golden(name)) == given(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_offset_is_read(name: str) -> None:
    (decoded,) = read(golden(name))
    assert decoded.next_offset == len(given(name))
    assert not decoded.gaps
