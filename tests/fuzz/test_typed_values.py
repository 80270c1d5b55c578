"""A few hundred JSON documents, change events and frames of the kinds that `make fuzz` tries for hours."""

import os
import random
from collections import Counter

from tests.fuzz.debezium_values import check_events, mutated_events
from tests.fuzz.frames import check_frames, mutated_frames
from tests.fuzz.json_values import check_documents, mutated_documents

INPUTS = 400 if os.environ.get("NUMBA_DISABLE_JIT") != "1" else 60


def test_mutated_documents_give_the_rows_of_the_oracle_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_documents(mutated_documents(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}


def test_mutated_change_events_give_the_rows_of_the_oracles_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_events(mutated_events(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}


def test_mutated_frames_give_the_ids_and_paths_of_the_oracle_or_are_refused() -> None:
    rng = random.Random(7)
    ended = Counter(check_frames(mutated_frames(rng), rng) for _ in range(INPUTS))
    assert set(ended) == {"read", "refused"}
