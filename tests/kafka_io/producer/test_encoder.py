"""Encoders make bytes of what they are for, and refuse anything else."""

from typing import Any

import pytest

from kafka_io.producer.encoder import BytesEncoder, Encoder, TextEncoder


@pytest.mark.parametrize(
    ("encoder", "data", "expected"),
    [
        (BytesEncoder(), b"as it is", b"as it is"),
        (BytesEncoder(), bytearray(b"array"), b"array"),
        (BytesEncoder(), memoryview(b"view"), b"view"),
        (BytesEncoder(), None, None),
        (TextEncoder(), "t\xe9xt", b"t\xc3\xa9xt"),
        (TextEncoder(), None, None),
    ],
)
def test_what_they_are_for_becomes_bytes(encoder: Encoder, data: Any, expected: bytes | None) -> None:
    assert encoder.encode(data) == expected


@pytest.mark.parametrize(("encoder", "data"), [(BytesEncoder(), "text"), (BytesEncoder(), 7), (TextEncoder(), b"x")])
def test_anything_else_is_refused(encoder: Encoder, data: Any) -> None:
    with pytest.raises(TypeError):
        encoder.encode(data)
