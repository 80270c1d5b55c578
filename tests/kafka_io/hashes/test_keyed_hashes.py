"""Hashes of a column: three judges say what HMAC-SHA256 of a value is. RFC 4231, the standard library, and DuckDB."""

import hmac

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.hashes.kernels.hmac_sha256 import BLOCK
from kafka_io.hashes.keyed_hashes import KeyedHash

# RFC 4231, sections 4.2 to 4.8: key, data, and the first 128 bits of the digest.
RFC_4231 = [
    (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b"),
    (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c7"),
    (b"\xaa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a7"),
    (bytes(range(1, 26)), b"\xcd" * 50, "82558a389a443c0ea4cc819899f2083a"),
    (b"\x0c" * 20, b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
    (b"\xaa" * 131, b"Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f"),
    (
        b"\xaa" * 131,
        (
            b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
            b"hashed before being used by the HMAC algorithm."
        ),
        "9b09ffa71b942fcb27635fbcd5b0e944",
    ),
]
AT_BORDERS = st.one_of(
    st.binary(max_size=200),
    st.integers(0, 4).flatmap(lambda blocks: st.binary(min_size=max(0, BLOCK * blocks - 10), max_size=BLOCK * blocks)),
)


def hash_of(key: bytes, value: bytes) -> str:
    """The hash that the standard library makes."""
    return f"k1:{hmac.digest(key, value, 'sha256').hex()[:32]}"


@pytest.mark.parametrize(("key", "data", "digest"), RFC_4231)
def test_a_hash_is_the_beginning_of_the_published_digest(key: bytes, data: bytes, digest: str) -> None:
    assert KeyedHash("k1", key)(pa.array([data])).to_pylist() == [f"k1:{digest}"]


@given(key=AT_BORDERS, values=st.lists(st.one_of(st.none(), AT_BORDERS), max_size=10))
def test_a_hash_is_what_the_standard_library_says(key: bytes, values: list[bytes | None]) -> None:
    hashed = KeyedHash("k1", key)(pa.array(values, pa.binary()))
    assert hashed.to_pylist() == [None if value is None else hash_of(key, value) for value in values]


def test_a_hash_is_what_duckdb_computes_in_sql() -> None:
    """Another program can make the same hashes: inner and outer hash of RFC 2104, for a key of at most one block."""
    key, values = b"a key of sixteen", ["zelda@example.org", "", "\N{LATIN SMALL LETTER E WITH ACUTE}"]
    pads = [bytes(byte ^ pad for byte in key.ljust(BLOCK, b"\0")) for pad in (0x36, 0x5C)]
    query = "SELECT left(sha256(?::BLOB || unhex(sha256(?::BLOB || ?::BLOB))), 32)"
    expected = [duckdb.execute(query, [pads[1], pads[0], value.encode()]).fetchall()[0][0] for value in values]
    assert KeyedHash("k1", key)(pa.array(values)).to_pylist() == [f"k1:{digest}" for digest in expected]


def test_null_stays_null_and_an_empty_text_has_a_hash_of_its_own() -> None:
    hashes = KeyedHash("k1", b"key")(pa.array(["", None, "a", ""])).to_pylist()
    assert hashes == [hash_of(b"key", b""), None, hash_of(b"key", b"a"), hash_of(b"key", b"")]


def test_a_slice_of_a_column_and_one_of_nulls_alone_are_hashed_too() -> None:
    hashes = KeyedHash("k1", b"key")
    column = pa.array(["x", "zelda", None, "y"])
    assert hashes(column.slice(1, 2)).to_pylist() == [hash_of(b"key", b"zelda"), None]
    assert hashes(pa.array([None, None], pa.string())).to_pylist() == [None, None]
    assert hashes(pa.array([], pa.binary())).to_pylist() == []


@pytest.mark.parametrize("repeats", [1, 10])
@pytest.mark.parametrize("with_nulls", [True, False])
def test_a_long_column_is_hashed_whether_its_values_repeat_or_not(repeats: int, with_nulls: bool) -> None:
    values = [None if with_nulls and row % 7 == 0 else b"%d" % (row // repeats) for row in range(10_000)]
    hashes = KeyedHash("k1", b"key")(pa.array(values, pa.binary()).slice(3))
    assert hashes.to_pylist() == [None if value is None else hash_of(b"key", value) for value in values[3:]]


def test_each_value_is_hashed_once_if_values_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    of_distinct = KeyedHash.of_distinct

    def counted(hashes: KeyedHash, values: pa.Array) -> pa.StringArray:
        counts.append(len(values))
        return of_distinct(hashes, values)

    monkeypatch.setattr(KeyedHash, "of_distinct", counted)
    for different in (10_000, 3_000, 500):
        KeyedHash("k1", b"key")(pa.array([str(row * 7919 % different) for row in range(10_000)]))
    assert counts == [10_000, 3_000, 500]


def test_the_key_is_not_in_what_the_object_shows() -> None:
    assert "secret" not in repr(KeyedHash("k1", b"secret"))
