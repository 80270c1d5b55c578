"""Encoders turn values of their type into bytes, and refuse other types."""

from typing import Any

import pytest

from kafka_io.producer.encoder import BytesEncoder, Encoder, TextEncoder


@pytest.mark.parametrize(
    ("encoder", "data", "expected"),
    [
        (BytesEncoder(), b"bytes", b"bytes"),
        (BytesEncoder(), bytearray(b"array"), b"array"),
        (BytesEncoder(), memoryview(b"view"), b"view"),
        (BytesEncoder(), None, None),
        (TextEncoder(), "t\xe9xt", b"t\xc3\xa9xt"),
        (TextEncoder(), None, None),
    ],
)
def test_an_encoder_turns_its_type_into_bytes(encoder: Encoder, data: Any, expected: bytes | None) -> None:
    assert encoder.encode(data) == expected


@pytest.mark.parametrize(("encoder", "data"), [(BytesEncoder(), "text"), (BytesEncoder(), 7), (TextEncoder(), b"x")])
def test_an_encoder_refuses_other_types(encoder: Encoder, data: Any) -> None:
    with pytest.raises(TypeError):
        encoder.encode(data)
