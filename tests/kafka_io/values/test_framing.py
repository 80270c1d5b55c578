"""Frames of schema registries: which are read, and which are refused with their name."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.records.build import _varint
from kafka_io.values.framing import MessagePaths, SchemaFrames, read_frames, read_message_paths


def binary(*values: bytes | None) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def framed(schema_id: int, body: bytes = b"") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body


def reasons(result: SchemaFrames | MessagePaths) -> dict[int, str]:
    return {failure.row: failure.reason for failure in result.failures}


def test_a_frame_gives_the_id_of_the_schema_and_the_start_of_the_body() -> None:
    frames = read_frames(binary(framed(7, b"body"), framed(2**31 - 1), framed(0, b"x")))
    assert frames.ids.tolist() == [7, 2**31 - 1, 0]
    assert frames.starts.tolist() == [5, 14, 19]
    assert frames.failures == []


def test_positions_are_those_in_the_bytes_of_a_sliced_array() -> None:
    frames = read_frames(binary(b"first", None, framed(3, b"ab"), framed(4)).slice(1, 2))
    assert frames.ids.tolist() == [-1, 3]
    assert frames.starts.tolist() == [-1, 10]


@pytest.mark.parametrize("values", [binary(), binary(None), binary(None, None).slice(1)])
def test_a_null_value_has_no_frame_and_is_no_failure(values: pa.BinaryArray) -> None:
    frames = read_frames(values)
    assert frames.ids.tolist() == [-1] * len(values)
    assert frames.failures == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "empty"),
        (b"\0\0\0\1", "fewer than the 5 bytes"),
        (b"\7\0\0\0\1", "first byte is not 0"),
        (b"\0\xff\0\0\1x", "negative"),
        (b"\3\0" + bytes(16), "AWS Glue"),
        (b"\3\5" + bytes(16) + b"body", "AWS Glue"),
        (b"\3\1" + bytes(16), "first byte is not 0"),
        (b"\3\0" + bytes(15), "first byte is not 0"),
        (b"\1" + bytes(16), "GUID"),
    ],
)
def test_another_frame_is_refused_by_name_and_its_neighbours_are_read(value: bytes, reason: str) -> None:
    frames = read_frames(binary(framed(1), value, framed(2)))
    assert frames.ids.tolist() == [1, -1, 2]
    assert list(reasons(frames)) == [1]
    assert reason in reasons(frames)[1]


@settings(deadline=None)
@given(values=st.lists(st.none() | st.binary(max_size=24).map(lambda tail: tail), max_size=8))
def test_any_bytes_have_a_frame_or_a_failure(values: list[bytes | None]) -> None:
    frames = read_frames(binary(*values))
    failed = reasons(frames)
    for row, value in enumerate(values):
        is_framed = value is not None and len(value) >= 5 and value[0] == 0 and value[1] < 0x80
        assert (frames.ids[row] >= 0) == (frames.starts[row] >= 0) == is_framed
        assert (row in failed) == (value is not None and not is_framed)


def test_the_path_of_a_protobuf_message_is_read_after_the_frame() -> None:
    def path(*numbers: int) -> bytes:
        return b"".join(_varint(number) for number in numbers)

    values = binary(
        framed(1, b"\0body"),
        framed(1, path(2, 1, 300) + b"body"),
        None,
        framed(1, path(1, 0) + b"body"),
        framed(1, path(2, 1, 300)),
        framed(1, path(2, 1)),
        framed(1, path(-1)),
        framed(1, path(1, -1)),
        framed(1, path(33, *range(33))),
        b"",
    )
    frames = read_frames(values)
    message_paths = read_message_paths(values, frames)
    assert [message_paths.paths[number] if number >= 0 else None for number in message_paths.numbers] == [
        (0,), (1, 300), None, (0,), (1, 300), None, None, None, None, None,
    ]  # fmt: skip
    data = values.buffers()[2].to_pybytes()
    assert [data[start : start + 4] for start in message_paths.starts[[0, 1, 3]]] == [b"body"] * 3
    assert list(reasons(message_paths)) == [5, 6, 7, 8]
    assert np.array_equal(message_paths.starts < 0, message_paths.numbers < 0)
