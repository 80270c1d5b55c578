"""Types of fields: plain and compact lengths, null only in nullable fields, counts checked against the bytes left."""

from collections.abc import Callable
from typing import Any, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import Corrupt, Truncated, Unsupported, WireError
from kafka_io.wire import types
from kafka_io.wire.primitives import WireReader, int16, int32, uvarint
from kafka_io.wire.types import COMPACT, LONG, NULL_UUID, SHORT, Blob, FieldCodec, Fixed, Items, Text

LENGTHS = [SHORT, LONG, COMPACT]


def written(codec: FieldCodec, value: Any) -> bytes:
    parts: list[Any] = []
    codec.write(value, parts)
    return b"".join(parts)


def read(codec: FieldCodec, data: bytes) -> Any:
    reader = WireReader(data)
    value = codec.read(reader)
    reader.end()
    return value


def scalar(hint: Any) -> FieldCodec:
    """The codec that annotates a type such as Int32."""
    codec: FieldCodec = get_args(hint)[1]
    return codec


INT32 = scalar(types.Int32)


@pytest.mark.parametrize(
    ("hint", "value", "data"),
    [
        (types.Bool, True, "01"),
        (types.Bool, False, "00"),
        (types.Int8, -1, "ff"),
        (types.Int16, -2, "fffe"),
        (types.Int32, 1, "00000001"),
        (types.Int64, -(2**63), "8000000000000000"),
        (types.Uuid, NULL_UUID, "00" * 16),
        (types.Uuid, UUID(int=258), "00" * 14 + "0102"),
    ],
)
def test_fixed_types_are_the_same_in_all_versions(hint: Any, value: Any, data: str) -> None:
    codec = scalar(hint)
    assert written(codec, value) == bytes.fromhex(data)
    assert read(codec, bytes.fromhex(data)) == value
    assert codec.min_bytes == len(data) // 2


@pytest.mark.parametrize("length", LENGTHS)
@given(text=st.none() | st.text(), data=st.none() | st.binary(), numbers=st.none() | st.lists(st.integers(-9, 9)))
def test_values_are_read_as_written(
    length: Fixed, text: str | None, data: bytes | None, numbers: list[int] | None
) -> None:
    items = None if numbers is None else tuple(numbers)
    cases: list[tuple[FieldCodec, Any]] = [
        (Text(length, nullable=True), text),
        (Blob(length, nullable=True), data),
        (Items(length, nullable=True, item=INT32), items),
    ]
    for codec, value in cases:
        assert read(codec, written(codec, value)) == value


@pytest.mark.parametrize(
    ("length", "null", "empty", "single"),
    [(SHORT, "ffff", "0000", "000178"), (LONG, "ffffffff", "00000000", "0000000178"), (COMPACT, "00", "01", "0278")],
)
def test_null_and_empty_values_differ(length: Fixed, null: str, empty: str, single: str) -> None:
    for codec, values in (
        (Text(length, nullable=True), (None, "", "x")),
        (Blob(length, nullable=True), (None, b"", b"x")),
        (Items(length, nullable=True, item=scalar(types.Int8)), (None, (), (120,))),
    ):
        for value, data in zip(values, (null, empty, single), strict=True):
            assert written(codec, value).hex() == data
            assert read(codec, bytes.fromhex(data)) == value


CODECS: list[Callable[[Fixed], FieldCodec]] = [
    lambda length: Text(length, nullable=False),
    lambda length: Blob(length, nullable=False),
    lambda length: Items(length, nullable=False, item=INT32),
]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("codec", CODECS)
def test_null_is_refused_if_the_field_is_not_nullable(length: Fixed, codec: Callable[[Fixed], FieldCodec]) -> None:
    with pytest.raises(Unsupported, match="null"):
        written(codec(length), None)
    with pytest.raises(Corrupt, match="length of -1"):
        read(codec(length), length.encode(-1))


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("length", [int16(-2), int32(-7)])
def test_no_other_negative_length_means_null(length: bytes, nullable: bool) -> None:
    codec = Blob(SHORT if len(length) == 2 else LONG, nullable)
    with pytest.raises(Corrupt):
        read(codec, length)


@pytest.mark.parametrize("count", [3, 2**31 - 1])
@pytest.mark.parametrize("length", [LONG, COMPACT])
def test_a_count_above_the_bytes_that_are_left_is_refused(length: Fixed, count: int) -> None:  # fault W09
    with pytest.raises(Corrupt, match=str(count)):
        read(Items(length, nullable=True, item=INT32), length.encode(count) + bytes(8))


def test_a_count_is_checked_at_every_depth() -> None:  # fault W09
    inner = Items(COMPACT, nullable=False, item=INT32)
    assert read(Items(COMPACT, nullable=False, item=inner), b"\x03\x01\x02\x00\x00\x00\x07") == ((), (7,))
    with pytest.raises(Corrupt):
        read(Items(COMPACT, nullable=False, item=inner), b"\x02" + uvarint(2**32 - 1) + bytes(4))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("size", [5, 2**15 - 1])
def test_a_length_above_the_bytes_that_are_left_is_truncated(length: Fixed, size: int) -> None:  # fault W10
    for codec in (Text(length, nullable=False), Blob(length, nullable=False)):
        with pytest.raises(Truncated):
            read(codec, length.encode(size) + b"four")


def test_bytes_that_are_read_are_not_copied() -> None:
    data = bytearray(b"\x00\x00\x00\x02ab")
    value = Blob(LONG, nullable=False).read(WireReader(data))
    data[4:] = b"cd"
    assert bytes(value or b"") == b"cd"


@given(data=st.binary(max_size=40))
def test_any_bytes_give_a_value_or_a_wire_error(data: bytes) -> None:
    for length in LENGTHS:
        for codec in (
            Text(length, nullable=True),
            Blob(length, nullable=False),
            Items(length, nullable=True, item=INT32),
        ):
            try:
                value = codec.read(WireReader(data))
            except WireError:
                continue
            assert read(codec, written(codec, value)) == value


@pytest.mark.parametrize("length", [LONG, COMPACT])
def test_a_string_above_the_limit_of_kafka_is_refused(length: Fixed) -> None:  # fault H02
    codec = Text(length, nullable=False)
    assert len(read(codec, written(codec, "x" * 32_767))) == 32_767
    with pytest.raises(Corrupt, match="a string of 32768 bytes"):
        read(codec, written(codec, "x" * 32_768))
