"""A few thousand of what `make fuzz` tries for hours: mutated logs with right checksums."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.laws import check_log, check_set
from tests.fuzz.logs import mutated_log
from tests.fuzz.sets_v07 import mutated_set

ROOT = Path(__file__).parents[2]
# Without the compiler each takes a hundred times as long.
LOGS, SETS = (1000, 500) if os.environ.get("NUMBA_DISABLE_JIT") != "1" else (60, 30)


# R05, R06, R07, R08, R09, R10, R11, R12, R13, R14, R27
@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_log_gives_typed_errors_or_the_oracles_rows(seed: int) -> None:
    rng = random.Random(seed)
    ended = Counter(check_log(mutated_log(rng), rng) for _ in range(LOGS))
    assert {"read", "Corrupt"} <= set(ended)


# R01, R14, R19, R26
@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_set_of_0_7_gives_typed_errors_or_the_oracles_rows(seed: int) -> None:
    rng = random.Random(seed)
    ended = Counter(check_set(mutated_set(rng), rng) for _ in range(SETS))
    assert {"read", "Corrupt"} <= set(ended)


def test_so_it_is_with_the_compiler_off() -> None:
    """Habit 7: nothing wraps where numba would have widened."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__, "-k", "mutated and 0"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
