"""Random schemas and values: the decoder gives the rows of google.protobuf, or refuses what that refuses."""

import os
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.values.protobuf.descriptors import parse_protobuf
from tests.fuzz.protobuf_values import check_messages, check_rows, decode, mutated_messages
from tests.kafka_io.values.protobuf.making import MessageMaker, ProtoMaker

# Without the JIT compiler each input takes a hundred times as long.
EXAMPLES = 60 if os.environ.get("NUMBA_DISABLE_JIT") != "1" else 10
RANDOM = st.integers(0, 2**32).map(random.Random)


@pytest.mark.slow
@settings(deadline=None, max_examples=EXAMPLES)
@given(rng=RANDOM)
def test_any_message_of_any_type_gives_the_row_of_google_protobuf(rng: random.Random) -> None:
    schema = parse_protobuf(ProtoMaker(rng).text())
    maker = MessageMaker(rng)
    bodies = [maker.body(schema.message_at((0,))) for _ in range(rng.randrange(1, 8))]
    check_rows(schema, bodies, decode(schema, bodies))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_mutated_messages_fail_alone_and_their_neighbours_keep_their_rows(seed: int) -> None:
    rng = random.Random(seed)
    ended = Counter(check_messages(mutated_messages(rng), rng) for _ in range(EXAMPLES))
    assert "refused" in ended
