"""Frames: complete, byte by byte, and several at once; sizes are checked before memory is allocated."""

import numpy as np
import pytest

from kafka_io.errors import Corrupt, TooLarge
from kafka_io.wire.framing import Frames, framed
from tests.receiving import receive


def open_frames(min_size: int = 0) -> Frames:
    return Frames(min_size=min_size, max_size=lambda: 100)


def bodies(frames: Frames, *chunks: bytes) -> list[bytes]:
    return [bytes(body) for chunk in chunks for body in receive(frames, chunk)]


def test_framesare_complete_however_the_stream_is_cut() -> None:
    stream = framed(b"one") + framed(b"") + framed(b"three")
    expected = [b"one", b"", b"three"]
    assert bodies(open_frames(), stream) == expected
    assert bodies(open_frames(), *(stream[start : start + 1] for start in range(len(stream)))) == expected
    for cut in range(len(stream)):
        assert bodies(open_frames(), stream[:cut], stream[cut:]) == expected


def test_an_incomplete_frame_waits_for_its_rest() -> None:
    frames = open_frames()
    assert bodies(frames, framed(b"one") + b"\x00\x00") == [b"one"]
    assert bodies(frames, b"\x00\x01x") == [b"x"]


def test_bytes_are_received_directly_into_their_frame() -> None:
    frames = open_frames()
    for part in (framed(b"abcd")[:4], b"ab", b"cd"):
        space = frames.space()
        space[: len(part)] = part
        body = frames.filled(len(part))
    assert body is not None
    assert bytes(body) == b"abcd"


@pytest.mark.parametrize("size", [-5, -1, 0, 1])
def test_a_size_below_the_minimum_is_refused(size: int) -> None:  # fault W07
    with pytest.raises(Corrupt):
        bodies(open_frames(min_size=2), size.to_bytes(4, "big", signed=True))


def test_a_size_above_the_maximum_is_refused_before_memory_is_allocated() -> None:  # fault W06
    with pytest.raises(TooLarge, match="2147483647"):
        bodies(open_frames(), (2**31 - 1).to_bytes(4, "big"))


def frame_of(frames: Frames, size: int, fill: bytes) -> memoryview:
    """A frame of this size, received in two parts like from a socket."""
    frames.space()[:4] = size.to_bytes(4, "big")
    assert frames.filled(4) is None
    frames.space()[:] = fill * size
    body = frames.filled(size)
    assert body is not None
    return body


def test_the_memory_of_a_large_frame_is_used_again_when_nothing_refers_to_it() -> None:
    frames = Frames(min_size=0, max_size=lambda: 10_000_000)
    first = frame_of(frames, 3_000_000, b"a")
    memory = id(first.obj)
    first.release()
    second = frame_of(frames, 2_500_000, b"b")
    assert id(second.obj) == memory
    assert second == b"b" * 2_500_000


def test_memory_that_something_refers_to_is_never_overwritten() -> None:
    frames = Frames(min_size=0, max_size=lambda: 10_000_000)
    parts = [frame_of(frames, 1_000_000, b"%d" % number)[7:900_000] for number in range(8)]
    array = np.frombuffer(parts.pop(), np.uint8)
    for number, part in enumerate(parts):
        assert part == b"%d" % number * len(part)
    for _ in range(4):
        frame_of(frames, 1_000_000, b"x")
    assert (array == ord("7")).all()
