"""The kernels of 0.7's message sets agree with the oracle; test_compiler_off.py repeats this without compiling."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.compression import CODECS
from kafka_io.records.build import message
from tests.kafka_io.records.v07_decoding import read_rows
from tests.oracles import sets_v07


def wrapped(messages: list[bytes], cut: int, codec: int) -> bytes:
    """`messages`, the last one maybe cut, compressed in one."""
    content = b"".join(messages)
    # The first message is never cut: a set that is nothing but a piece is refused.
    kept = len(content) - (cut if len(messages) > 1 else 0)
    return message(CODECS[codec].compress(content[:kept]), attributes=codec)


PAYLOADS = st.binary(max_size=40)
# All attribute bits but the codec's are ignored.
IGNORED_BITS = st.integers(0, 63).map(lambda bits: bits << 2)
PLAIN = st.builds(message, PAYLOADS, magic=st.just(0)) | st.builds(message, PAYLOADS, attributes=IGNORED_BITS)
MESSAGES = st.recursive(
    PLAIN,
    lambda inner: st.builds(wrapped, st.lists(inner, max_size=5), st.integers(0, 9), st.sampled_from([1, 2])),
    max_leaves=20,
)


@settings(deadline=None)
@given(messages=st.lists(MESSAGES, max_size=6), cut=st.integers(0, 9), base=st.integers(0, 2**62))
def test_any_nested_set_gives_the_rows_of_the_oracle(messages: list[bytes], cut: int, base: int) -> None:
    data = b"".join(messages)
    data = data[: len(data) - cut]
    whole = sets_v07.whole_bytes(data)
    assert read_rows(data, base=base) == sets_v07.decode(data[:whole], base=base)
