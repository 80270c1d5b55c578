"""A few thousand inputs of the kind that `make fuzz` tries for hours: mutated logs, mostly with valid checksums."""

import os
import random
from collections import Counter

import pytest

from tests.fuzz.laws import check_log, check_set
from tests.fuzz.logs import mutated_log
from tests.fuzz.sets_v07 import mutated_set
from tests.thorough import first

# Without the JIT compiler each input takes a hundred times as long.
LOGS, SETS = (1000, 500) if os.environ.get("NUMBA_DISABLE_JIT") != "1" else (60, 30)


# faults R05, R06, R07, R08, R09, R10, R11, R12, R13, R14, R27
@pytest.mark.slow
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_a_mutated_log_gives_typed_errors_or_the_rows_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    ended = Counter(check_log(mutated_log(rng), rng) for _ in range(LOGS))
    assert {"read", "Corrupt"} <= set(ended)


# faults R01, R14, R19, R26
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_a_mutated_set_of_0_7_gives_typed_errors_or_the_rows_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    ended = Counter(check_set(mutated_set(rng), rng) for _ in range(SETS))
    assert {"read", "Corrupt"} <= set(ended)
