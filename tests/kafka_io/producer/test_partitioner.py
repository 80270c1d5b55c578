"""A key gets the same partition as in other clients, and every key gets an existing partition."""

import string

import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.producer.partitioner import (
    Murmur2Partitioner,
    Partitioner,
    StringHashPartitioner,
    murmur2,
    string_hash,
)

ALL: list[Partitioner] = [Murmur2Partitioner(), StringHashPartitioner()]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)
def test_murmur2_equals_the_hash_of_javas_client(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % 2**32


@given(st.binary())
def test_murmur2_equals_the_hash_of_aiokafka(key: bytes) -> None:
    assert murmur2(key) == aiokafka_murmur2(key) % 2**32


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("\N{GRINNING FACE}", 1772899)],
)
def test_a_text_hashes_as_in_java(text: str, expected: int) -> None:
    assert string_hash(text) == expected


@pytest.mark.parametrize("partitioner", ALL)
@given(key=st.none() | st.binary() | st.text(string.printable).map(str.encode), count=st.integers(1, 1000))
def test_every_key_gets_an_existing_partition(partitioner: Partitioner, key: bytes | None, count: int) -> None:
    assert 0 <= partitioner.choose("clicks", key, count) < count


@pytest.mark.parametrize("partitioner", ALL)
@given(key=st.binary(), count=st.integers(1, 1000))
def test_a_key_gets_the_same_partition_in_every_topic(partitioner: Partitioner, key: bytes, count: int) -> None:
    assert partitioner.choose("clicks", key, count) == partitioner.choose("views", key, count)


@pytest.mark.parametrize("partitioner", ALL)
def test_messages_without_a_key_use_all_partitions(partitioner: Partitioner) -> None:
    assert {partitioner.choose("clicks", None, 3) for _ in range(200_000)} == {0, 1, 2}


def test_200_messages_in_a_row_without_a_key_go_to_one_partition() -> None:
    partitioner = Murmur2Partitioner()
    chosen = [partitioner.choose("clicks", None, 1000) for _ in range(1000)]
    assert [len(set(chosen[start : start + 200])) for start in range(0, 1000, 200)] == [1] * 5
    assert len(set(chosen)) > 1
